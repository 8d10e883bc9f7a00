#include "zero/report/running.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/files/lookup.h"

namespace zero {
namespace {

constexpr std::int64_t recent_nanoseconds = 60'000'000'000;

bool was_written_recently(const std::string& path) {
  const FileFacts facts = facts_of(path);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return facts.kind == FileFacts::Kind::file &&
         std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - facts.written < recent_nanoseconds;
}

}  // namespace

bool is_running(const std::string& folder) {
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return was_written_recently(folder + "/metrics.jsonl");
  const int locked = ::flock(directory, LOCK_SH | LOCK_NB);
  const int reason = errno;
  ::close(directory);
  if (locked == 0) return false;
  return reason == EWOULDBLOCK || was_written_recently(folder + "/metrics.jsonl");
}

}  // namespace zero

#include "zero/doctor/program_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "base/process/child_process.h"

namespace zero {
namespace {

/// A file in memory, with a path for this process.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("output", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(text("a file in memory cannot be made: ", std::strerror(errno)));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return text("/proc/self/fd/", descriptor_); }
  std::string content() const {
    std::string all;
    char piece[4096];
    for (ssize_t got = 0; (got = ::pread(descriptor_, piece, sizeof piece, off_t(all.size()))) > 0;)
      all.append(piece, std::size_t(got));
    return all;
  }

 private:
  int descriptor_;
};

}  // namespace

std::string program_on_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string place = (folder.empty() ? "." : folder) + "/" + name;
    if (is_file(place) && may_access(place, X_OK)) return place;
  }
  return "";
}

ProgramOutput output_of(const std::vector<std::string>& words, int seconds) {
  const MemoryFile log;
  const int code = run_program_to_end(words, {}, log.path(), std::chrono::seconds(seconds));
  return {code, log.content()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace zero

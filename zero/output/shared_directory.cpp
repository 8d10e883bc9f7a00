#include "zero/output/shared_directory.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "comm/agreement.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

constexpr auto patience = std::chrono::seconds(10);  // file systems of a network may show a new file late

bool appears(const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::error_code none;
  while (!std::filesystem::exists(path, none)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace

void require_shared(const std::string& directory, Communicator& group) {
  const std::int64_t number =
      broadcast_number(group, std::chrono::system_clock::now().time_since_epoch().count() ^ ::getpid(), 0);
  const std::string probe = directory + "/shared-" + std::to_string(number);
  on_first(group, [&] {
    if (!std::ofstream(probe)) throw Error(probe + ": cannot be written");
  });
  const auto remove = [&] {
    std::error_code none;
    if (group.rank() == 0) std::filesystem::remove(probe, none);
  };
  try {
    all_or_none(group, [&] {
      if (!appears(probe))
        throw InputError(
            "job.output_dir = \"" + directory +
            "\" is not one directory on all nodes, which [checkpoint] interval needs: name one on a shared file system");
    });
  } catch (...) {
    remove();
    throw;
  }
  remove();
}

}  // namespace zero

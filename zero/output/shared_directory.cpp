#include "zero/output/shared_directory.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

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

void require_shared(const std::string& directory, Communicator& communicator,
                    const std::function<void(const std::function<void()>&)>& agree) {
  const at::Tensor number =
      at::full({1}, std::chrono::system_clock::now().time_since_epoch().count() ^ ::getpid(), at::kLong);
  communicator.broadcast(number, 0, {Phase::setup});
  const std::string probe = directory + "/shared-" + std::to_string(number.item<std::int64_t>());
  agree([&] {
    if (communicator.rank() == 0 && !std::ofstream(probe)) throw Error(probe + ": cannot be written");
  });
  const auto remove = [&] {
    std::error_code none;
    if (communicator.rank() == 0) std::filesystem::remove(probe, none);
  };
  try {
    agree([&] {
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

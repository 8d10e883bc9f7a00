#include "base/files/make_folder.h"

#include <filesystem>

namespace zero {

bool make_folder(FileCalls& calls, const std::string& folder) {
  const std::string above = std::filesystem::path(folder).parent_path().string();
  int made = calls.make_directory(folder);
  if (made < 0 && errno == ENOENT && !above.empty() && above != folder) {
    make_folder(calls, above);
    made = calls.make_directory(folder);
  }
  if (made < 0 && errno == EEXIST) return false;
  check_call(made, folder, "made");
  const std::string place = above.empty() ? "." : above;
  if (calls.sync_directory(place) < 0) {
    const int reason = errno;
    calls.remove(folder);
    fail_call(folder, "made durable: " + place + " cannot be synced", reason);
  }
  return true;
}

}  // namespace zero

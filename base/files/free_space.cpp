#include "base/files/free_space.h"

#include <filesystem>

#include "base/files/lookup.h"

namespace zero {

std::int64_t free_disk_bytes(const std::string& path) {
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(path, error);
  while (!is_there(place) && place.has_relative_path()) place = place.parent_path();
  const auto space = std::filesystem::space(place, error);
  return error ? -1 : std::int64_t(space.available);
}

}  // namespace zero

#pragma once
// A number with its noun, in messages.
#include <cstdint>
#include <string>

namespace zero {

/// "1 row", "2 rows". The noun's plural takes an s.
inline std::string counted(std::int64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace zero

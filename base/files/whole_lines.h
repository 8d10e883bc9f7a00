#pragma once
// Reads a file of lines that another process may still be writing or cutting.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/file.h"

namespace zero {

/// Calls `each` with every line that has an end, as a std::string_view without that end. Returns true if something
/// follows the last of them. Throws InputError if a read fails.
template <class Each>
bool for_each_whole_line(const File& file, const Each& each) {
  constexpr std::int64_t block = 1 << 20;
  std::string held;
  for (std::int64_t begin = 0; begin < file.size();) {
    const std::size_t kept = held.size();
    held.resize(kept + std::size_t(std::min(block, file.size() - begin)));
    const std::int64_t got = file.read_up_to(held.data() + kept, std::int64_t(held.size() - kept), begin);
    held.resize(kept + std::size_t(got));
    if (got == 0) break;  // the run has cut it meanwhile
    begin += got;
    std::size_t done = 0;
    for (std::size_t end; (end = held.find('\n', done)) != std::string::npos; done = end + 1)
      each(std::string_view(held).substr(done, end - done));
    held.erase(0, done);
  }
  return !held.empty();
}

}  // namespace zero

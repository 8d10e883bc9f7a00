#pragma once
// RunHeader: the comment at the head of a run's config.toml, about the start that wrote it. No LibTorch.
#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

struct RunHeader {
  std::string version;            // of the program
  int ranks = 0;                  // 0: unknown
  int start = 1;                  // 1, and one more for each resumption
  std::int64_t steps_before = 0;  // of former starts

  /// "# zero_train 0.1.0 (commit 44116d0), 2 ranks, start 3 after step 40\n". A first start is not mentioned.
  std::string line() const;
};

/// Reads the first line of a config.toml. A text without such a line gives the defaults.
RunHeader run_header_of(std::string_view config);

}  // namespace zero

#pragma once
// Refusals that LibTorch throws for this project, as errors of its own class: known again by these words.

namespace zero {

inline constexpr const char* no_raw_pointer = "a raw pointer to a sharded parameter";

}  // namespace zero

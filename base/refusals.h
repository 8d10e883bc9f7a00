#pragma once
// Phrases that identify this project's own error inside a LibTorch exception. Such an exception is rethrown as the
// project's own class.

namespace zero {

inline constexpr const char* no_raw_pointer = "a raw pointer to a sharded parameter";

}  // namespace zero

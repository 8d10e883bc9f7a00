#pragma once
// Words that mark a refusal of this project inside a LibTorch exception. It is then rethrown as the project's own
// class.

namespace zero {

inline constexpr const char* no_raw_pointer = "a raw pointer to a sharded parameter";

}  // namespace zero

#pragma once
// Changes an input without breaking the frame of its files, so that code behind the first parser is reached. A JSON
// document loses and gains values. Lengths in a safetensors header and in a protobuf message are corrected.
#include <cstdint>
#include <functional>
#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace zero {

/// `bytes`: changes without knowledge of the form, which some inputs get.
std::string changed_input(const FuzzTarget& target, const std::string& input, std::uint64_t seed,
                          const std::function<std::string(const std::string&)>& bytes);

}  // namespace zero

#pragma once
// Changes an input but keeps the structure of its files valid, so that code behind the first parser is reached. Values
// are added to and removed from JSON documents. Lengths in a safetensors header and in a protobuf message are
// corrected.
#include <cstdint>
#include <functional>
#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace zero {

/// `bytes`: changes that ignore the file's form, which some inputs get.
std::string changed_input(const FuzzTarget& target, const std::string& input, std::uint64_t seed,
                          const std::function<std::string(const std::string&)>& bytes);

}  // namespace zero

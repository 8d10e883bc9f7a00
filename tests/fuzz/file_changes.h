#pragma once
// Changes of an input that keep the frame of its files, to reach code behind the first parser. A JSON document loses
// and gains values, a safetensors header gets its length, a protobuf message the lengths of its fields.
#include <cstdint>
#include <functional>
#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace zero {

/// `bytes`: changes without knowledge of the form, which some inputs get.
std::string changed_input(const FuzzTarget& target, const std::string& input, std::uint64_t seed,
                          const std::function<std::string(const std::string&)>& bytes);

}  // namespace zero

#pragma once
// The instruction sets that the host kernels are compiled for. All give the same bits; they differ in speed only.
#include <cstdint>

namespace zero {

enum class InstructionSet : std::uint8_t { scalar, avx2, avx512 };
const char* name_of(InstructionSet set);

/// The best one that this processor and its system can run.
InstructionSet best_instruction_set();

}  // namespace zero

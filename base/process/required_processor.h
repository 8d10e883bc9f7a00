#pragma once
// RequiredProcessor: the instructions for which programs are compiled (x86-64-v3), and a check at the start of each
// program. Without it a program would die of an illegal instruction.
#include <cstdint>

namespace zero {

/// Registers of CPUID, and the register of the vectors that the system saves (XCR0; 0 if it has none).
struct ProcessorWords {
  std::uint32_t features = 0, extended = 0, more = 0;  // leaf 1, ecx; leaf 7, ebx; leaf 0x80000001, ecx
  std::uint32_t saved = 0;
};

/// The first instructions that are missing, as users know them; null if there are none.
const char* missing_instructions(const ProcessorWords& words);

}  // namespace zero

#include "offload/kernels/instruction_set.h"

namespace zero {

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::scalar:
      return "scalar";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "?";
}

InstructionSet best_instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return InstructionSet::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    return InstructionSet::avx2;
#endif
  return InstructionSet::scalar;
}

}  // namespace zero

#pragma once
// The number types that kernels read and write, on the CPU and on GPUs. .cu files include this header, so it includes
// no other.

namespace zero {

enum class Number : int { fp32, bf16, fp16, fp64, int32, int64 };

}  // namespace zero

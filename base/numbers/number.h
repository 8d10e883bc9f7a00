#pragma once
// The number types of what kernels read and write, on the CPU and on GPUs. Seen by .cu files: no other header here.

namespace zero {

enum class Number : int { fp32, bf16, fp16, fp64, int32, int64 };

}  // namespace zero

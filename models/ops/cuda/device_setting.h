#pragma once
// LibTorch's settings for this process's GPU. main() sets them once, before the first GPU tensor is made.
#include <c10/core/ScalarType.h>

#include <string>

namespace zero {

/// Restricts attention to LibTorch's fused kernels: cuDNN's first on Hopper and newer, flash elsewhere and if
/// `deterministic`, the memory-efficient one in fp32. Falling back to the kernel that stores all scores is then an
/// error instead of a surprise in memory. (attention.cpp treats rows with several documents separately.) fp32 products
/// are IEEE (no TF32) until choose_matmul() allows more. If `deterministic`, operations without a deterministic kernel
/// throw, and cuBLAS gets a repeatable workspace. For that, cuBLAS must not have read its environment yet. Returns a
/// line for the log.
std::string prepare_device(int device, at::ScalarType compute, bool deterministic);

/// Sets if LibTorch operations that make the host wait for the GPU throw, from now on. For tests.
void forbid_waiting(bool forbidden);

}  // namespace zero

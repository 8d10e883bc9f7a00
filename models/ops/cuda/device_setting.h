#pragma once
// LibTorch's settings for this process's GPU: set once by main, before the first tensor there.
#include <c10/core/ScalarType.h>

#include <string>

namespace zero {

/// Restricts attention to LibTorch's fused kernels: cuDNN's first on Hopper and newer, flash elsewhere and with
/// `deterministic`, the memory-efficient one in fp32. A fallback to the kernel that holds all scores is then an error
/// instead of a loss of memory. (Documents in one row are separate from this choice: attention.cpp.) fp32 products are
/// IEEE (no TF32). With `deterministic`, operations without a deterministic kernel are errors, and cuBLAS has a
/// repeatable workspace (its environment must not have been read before). Returns a line for the log.
std::string prepare_device(int device, at::ScalarType compute, bool deterministic);

/// From now on, a LibTorch operation that makes the host wait for the GPU is an error (or allowed again). For tests.
void forbid_waiting(bool forbidden);

}  // namespace zero

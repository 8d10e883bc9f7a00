#pragma once
// How LibTorch computes on this process's GPU: set once by main, before the first tensor there.
#include <c10/core/ScalarType.h>

#include <string>

namespace zero {

/// Attention goes to LibTorch's fused kernels alone, so that a fall to the one that holds all scores is an error and
/// not a loss of memory: cuDNN's first on Hopper and newer, flash elsewhere and where `deterministic` asks; in fp32 the
/// memory-efficient one. (Documents in one row are apart from this choice: attention.cpp.) fp32 products are IEEE (no
/// TF32). With `deterministic`, operations without a deterministic kernel are errors, and cuBLAS has a workspace that
/// repeats (the environment must not have been read before). Returns a line for the log.
std::string prepare_device(int device, at::ScalarType compute, bool deterministic);

/// From now on, an operation of LibTorch that makes the host wait for the GPU is an error (or no longer one). For
/// tests.
void forbid_waiting(bool forbidden);

}  // namespace zero

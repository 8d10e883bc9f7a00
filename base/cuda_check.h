#pragma once
// Turns errors of the CUDA runtime into exceptions. Include this only in .cpp files that are built with CUDA.
#include <cuda_runtime_api.h>

#include "base/error.h"
#include "base/log.h"

namespace zero {

/// Throws Error with CUDA's own message unless `code` is success.
inline void check_cuda(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw Error(text(what, ": ", cudaGetErrorString(code)));
}

}  // namespace zero

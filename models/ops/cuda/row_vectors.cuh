#pragma once
// Common code of kernels over rows: launches by their type. For .cu files only.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/numbers/device_numbers.cuh"
#include "base/philox_block.h"
#include "models/ops/cuda/row_launchers.h"

namespace zero::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// Calls f(T{}) with the type of the rows.
template <class F>
void by_type(Number type, F f) {
  switch (type) {
    case Number::fp32:
      f(float{});
      break;
    case Number::bf16:
      f(__nv_bfloat16{});
      break;
    case Number::fp16:
      f(__half{});
      break;
    default:
      throw std::runtime_error("rows are fp32, bf16 or fp16");
  }
}

cudaStream_t stream_of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace
}  // namespace zero::cuda

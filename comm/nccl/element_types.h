#pragma once
// Maps LibTorch's element types to NCCL's.
#include <c10/core/ScalarType.h>
#include <nccl.h>

namespace zero {

/// Types that NCCL cannot sum are sent as bytes.
inline ncclDataType_t nccl_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kHalf:
      return ncclFloat16;
    case at::kInt:
      return ncclInt32;
    case at::kLong:
      return ncclInt64;
    default:
      return ncclUint8;
  }
}

}  // namespace zero

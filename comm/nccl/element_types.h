#pragma once
// LibTorch's types of elements as NCCL and the tree's kernel name them.
#include <c10/core/ScalarType.h>
#include <nccl.h>

#include "base/error.h"
#include "comm/nccl/cuda/tree_sum.h"

namespace zero {

/// Types that NCCL does not sum travel as bytes.
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

/// InternalError for types that are not summed.
inline cuda::Number number_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return cuda::Number::fp32;
    case at::kDouble:
      return cuda::Number::fp64;
    case at::kBFloat16:
      return cuda::Number::bf16;
    case at::kHalf:
      return cuda::Number::fp16;
    case at::kInt:
      return cuda::Number::int32;
    case at::kLong:
      return cuda::Number::int64;
    default:
      ZERO_CHECK(false, "no sums of this type");
  }
}

}  // namespace zero

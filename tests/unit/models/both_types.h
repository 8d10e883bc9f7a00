#pragma once
#include <ATen/ATen.h>

#include "tests/unit/models/small_model.h"

namespace zero::test {

/// Types that CPU kernels take.
constexpr at::ScalarType all_types[] = {at::kFloat, at::kBFloat16};

/// Values of `type`, and the same values in fp64.
struct Both {
  Both(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type)
      : own(random(shape, seed, type)), exact(own.to(at::kDouble)) {}
  at::Tensor own, exact;
};

}  // namespace zero::test

#pragma once
// Runs checks with the kernels for each SIMD target that this machine supports.
#include "base/simd/targets.h"

#include <hwy/highway.h>

namespace zero {

/// Calls f(name) for every compiled target that this processor supports. Then restores the best target.
template <class F>
void with_every_simd_target(F f) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    f(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace zero

#pragma once
// Runs checks with each kind of kernels that this machine can run.
#include "base/simd/targets.h"

#include <hwy/highway.h>

namespace zero {

/// Calls f(name) for every target that kernels are compiled for and this processor has. Then restores the best one.
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

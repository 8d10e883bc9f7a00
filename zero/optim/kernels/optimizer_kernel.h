#pragma once
// One step of an elementwise optimizer, over a flat span in host memory, in one pass.
#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>

#include "zero/optim/rule_settings.h"

namespace zero {

/// n elements. Each pointer is aligned to its own type. Pointers may be equal but must not overlap otherwise.
struct OptimizerSpan {
  void* master = nullptr;
  std::array<void*, 4> states{};             // those of the rule; the others are ignored
  c10::ScalarType state_type = c10::kFloat;  // of master and states: kFloat or kDouble
  const void* gradient = nullptr;
  c10::ScalarType gradient_type = c10::kFloat;  // kFloat, kBFloat16, kHalf; kDouble with states in kDouble
  void* weights = nullptr;  // receives the new master rounded to nearest even; nullptr: the master is the weights
  c10::ScalarType weight_type = c10::kFloat;  // kFloat, kBFloat16, kHalf; kDouble with states in kDouble
  std::int64_t n = 0;
};

/// The factors of one step: the rule's settings, with the step's own `lr` and `weight_decay`.
struct StepFactors : RuleSettings {
  double gradient_scale = 1.0;  // clip factor / loss scale: gradients are multiplied by it
  std::int64_t step = 1;        // from 1
};

/// The part of a span from element `begin` to `end`.
OptimizerSpan slice(const OptimizerSpan& span, std::int64_t begin, std::int64_t end);

}  // namespace zero

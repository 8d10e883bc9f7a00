#pragma once
// UpdateSpan: elements that an update rule updates in one call, and the factors of the step. UpdateLoop: a rule's loop
// over these elements.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "zero/optim/rule_settings.h"

namespace zero {

/// Contiguous tensors of elements [n] on one device. Two tensors may be identical but must not overlap otherwise.
struct UpdateSpan {
  at::Tensor master;               // the weights themselves if they are their own master
  std::vector<at::Tensor> states;  // in the order of Optimizer::states(), [n] or one value per block
  at::Tensor gradient;             // any floating type; a rule with several passes may overwrite it
  at::Tensor weights;              // receives the master, rounded to nearest even; undefined: it is the master
  int tensor = 0;                  // the first element's tensor, numbered among the optimizer's tensors
  std::int64_t begin = 0;          // the first element's index in that tensor, flattened
};

/// The factors of one step: the rule's settings, with `lr` and `weight_decay` of this step.
struct StepFactors : RuleSettings {
  double gradient_scale = 1.0;  // clip factor / loss scale: gradients are multiplied by it
  std::int64_t step = 1;        // from 1
};

/// Updates the elements [begin, end) of a span in host memory. `begin` is a multiple of update_grain. `stream`:
/// 64-byte-aligned weights are written with stores that bypass the caches.
using UpdateLoop = void (*)(const UpdateSpan& span, const StepFactors& factors, std::int64_t begin, std::int64_t end,
                            bool stream);

/// Number of elements that a thread updates at a time.
inline constexpr std::int64_t update_grain = std::int64_t{1} << 15;

}  // namespace zero

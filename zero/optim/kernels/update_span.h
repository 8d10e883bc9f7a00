#pragma once
// UpdateSpan: elements that a rule updates in one call, and the factors of the step. UpdateLoop: a rule's loop over
// them.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "zero/optim/rule_settings.h"

namespace zero {

/// Elements [n] of one device, contiguous. Tensors may be the same but must not overlap otherwise.
struct UpdateSpan {
  at::Tensor master;               // the weights themselves where they are their own master
  std::vector<at::Tensor> states;  // as Optimizer::states() lists them, [n] or one per block
  at::Tensor gradient;             // any floating type; a rule of several passes may write to it what it likes
  at::Tensor weights;              // receives the new master, rounded to even; undefined: the master is the weights
  int tensor = 0;                  // the tensor of the first element, by its number among those of the optimizer
  std::int64_t begin = 0;          // the first element's index in that tensor, flattened
};

/// The factors of one step: the rule's settings, with the step's own `lr` and `weight_decay`.
struct StepFactors : RuleSettings {
  double gradient_scale = 1.0;  // clip factor / loss scale: gradients are multiplied by it
  std::int64_t step = 1;        // from 1
};

/// Updates the elements [begin, end) of a span in host memory. `begin` is a multiple of update_grain. `stream`: weights
/// that are 64-byte aligned are written past the caches.
using UpdateLoop = void (*)(const UpdateSpan& span, const StepFactors& factors, std::int64_t begin, std::int64_t end,
                            bool stream);

/// Elements that a thread takes at a time.
inline constexpr std::int64_t update_grain = std::int64_t{1} << 15;

}  // namespace zero

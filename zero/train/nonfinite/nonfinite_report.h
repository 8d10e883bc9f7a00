#pragma once
// NonfiniteReport: the findings about a step that was not taken because something in it was not finite.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/core/engine.h"
#include "zero/core/states/nonfinite_search.h"
#include "zero/data/rows/loader.h"

namespace zero {

/// A rank's loss that is not finite: the first micro-batch with such a loss, and its rows of the training data.
struct NonfiniteLoss {
  int rank = 0;
  double loss = 0;
  std::int64_t micro_batch = 0;
  std::vector<std::int64_t> rows;
};

struct NonfiniteReport {
  std::int64_t step = 0;  // from 0
  double norm = 0;
  std::vector<NonfiniteLoss> losses;          // by rank
  bool gradients_are_known = true;            // false: the next step has replaced them
  std::optional<NonfiniteTensors> gradients;  // none: only the norm is not finite
  std::optional<NonfiniteTensors> states;     // current weights and optimizer states
  std::optional<NonfiniteTensors> frozen;     // weights that are not trained; searched if the trained ones are finite

  /// Returns a description: "step 3: the gradients' norm is nan; the loss of rank 1 is nan, in micro-batch 0 (rows 12,
  /// 40 of the training data); gradients are not finite from ... to ...", without a full stop.
  std::string describe() const;
};

/// Searches a step that was not taken. `losses`: the losses of this rank's micro-batches. The result is the same on all
/// ranks. Collective.
NonfiniteReport find_nonfinite(Engine& engine, Loader& data, std::int64_t step, const StepResult& result,
                               const std::vector<at::Tensor>& losses, bool gradients_are_there);

/// Returns true if the losses of all ranks are finite. Collective.
bool losses_are_finite(Engine& engine, const StepResult& result);

}  // namespace zero

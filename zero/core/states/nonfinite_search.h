#pragma once
// NonfiniteSearch: names the tensors that are not finite, after a step has shown that there are some. It costs nothing
// in other steps.
#include <optional>
#include <string>

#include "zero/core/model_states.h"

namespace zero {

/// A tensor by its unit in the chain.
struct TensorPlace {
  int unit = 0;
  std::string name;

  bool operator==(const TensorPlace&) const = default;
};

/// The first and the last tensor, in chain order, that hold an infinity or a NaN. A backward pass reaches the last one
/// first.
struct NonfiniteTensors {
  TensorPlace first, last;

  /// "from model.embed_tokens.weight (unit 0) to lm_head.weight (unit 3)", or "in ..." for a single tensor.
  std::string describe() const;
  bool operator==(const NonfiniteTensors&) const = default;
};

/// Searches the gradients of a step that was not taken, before the next one begins. Returns none if all are finite.
/// Each rank searches its 1/N. The result is the same on all ranks. Collective.
std::optional<NonfiniteTensors> nonfinite_gradients(ModelStates& model);

/// Searches the trained weights, at rest and in the master type, and all states and statistics of the optimizers. Reads
/// the states once, wherever they are.
std::optional<NonfiniteTensors> nonfinite_states(ModelStates& model);

/// Searches the frozen weights that are held in a plain format.
std::optional<NonfiniteTensors> nonfinite_frozen(ModelStates& model);

}  // namespace zero

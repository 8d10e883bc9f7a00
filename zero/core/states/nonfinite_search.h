#pragma once
// Where something is not finite, after the fact: steps that are fine never come here.
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

/// The first and the last of those that hold an infinity or a NaN, in chain order. A backward pass comes to the last one
/// first.
struct NonfiniteTensors {
  TensorPlace first, last;

  /// "from model.embed_tokens.weight (unit 0) to lm_head.weight (unit 3)", or "in ..." of one alone.
  std::string describe() const;
  bool operator==(const NonfiniteTensors&) const = default;
};

/// Of the gradients of a step that was not taken, before the next one begins. None: all are finite. Each rank looks at
/// its 1/N. Collective; the same on all ranks.
std::optional<NonfiniteTensors> nonfinite_gradients(ModelStates& model);

/// The same of the trained weights, as they are at rest and in master type, and of all that optimizers keep. Reads the
/// states, wherever they live, once.
std::optional<NonfiniteTensors> nonfinite_states(ModelStates& model);

/// The same of weights that are not trained, where they are held as plain numbers.
std::optional<NonfiniteTensors> nonfinite_frozen(ModelStates& model);

}  // namespace zero

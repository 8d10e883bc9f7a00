#pragma once
// SoundStates: finds weights and optimizer states that are not finite. It searches at most once after each update.
#include <cstdint>
#include <optional>

#include "zero/core/engine.h"
#include "zero/core/states/nonfinite_search.h"

namespace zero {

class SoundStates {
 public:
  /// The engine must outlive the object.
  explicit SoundStates(Engine& engine) : engine_(engine) {}

  /// Returns the tensors of the states that are not finite after that number of updates; none if all are finite. The
  /// result is the same on all ranks. Collective.
  std::optional<NonfiniteTensors> broken(std::int64_t updates);

  /// Forgets the last result. Call it after the states were replaced, perhaps with the same number of updates.
  void forget() { sound_updates_ = -1; }

 private:
  Engine& engine_;
  std::int64_t sound_updates_ = -1;  // number of updates after which the states were last found finite
};

}  // namespace zero

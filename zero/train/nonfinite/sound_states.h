#pragma once
// SoundStates: whether weights and optimizer states are finite, looked at once after each update at most.
#include <cstdint>
#include <optional>

#include "zero/core/engine.h"
#include "zero/core/states/nonfinite_search.h"

namespace zero {

class SoundStates {
 public:
  /// The engine outlives the object.
  explicit SoundStates(Engine& engine) : engine_(engine) {}

  /// The tensors of the states that are not finite after so many updates; none: all are finite. Collective; the same
  /// on all ranks.
  std::optional<NonfiniteTensors> broken(std::int64_t updates);

  /// The states are others, of as many updates perhaps.
  void forget() { sound_updates_ = -1; }

 private:
  Engine& engine_;
  std::int64_t sound_updates_ = -1;  // so many, and the states were finite
};

}  // namespace zero

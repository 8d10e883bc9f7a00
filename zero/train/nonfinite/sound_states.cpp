#include "zero/train/nonfinite/sound_states.h"

namespace zero {

// Only updates change the states.
std::optional<NonfiniteTensors> SoundStates::broken(std::int64_t updates) {
  if (sound_updates_ == updates) return std::nullopt;
  const auto found = nonfinite_states(engine_);
  if (!found) sound_updates_ = updates;
  return found;
}

}  // namespace zero

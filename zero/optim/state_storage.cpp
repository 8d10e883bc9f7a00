#include "zero/optim/state_storage.h"

namespace zero {

bool bf16_state(const Optimizer& optimizer, std::size_t state, at::ScalarType master) {
  const StateSpec spec = optimizer.states(master).at(state);
  return spec.type == at::kFloat && spec.grain == 1 && int(state) != optimizer.starts_as_weights();
}

std::vector<StateSpec> stored_states(const Optimizer& optimizer, at::ScalarType master, const StateStorage& storage) {
  std::vector<StateSpec> specs = optimizer.states(master);
  for (std::size_t s = 0; s < specs.size(); ++s)
    if (storage.bf16_states && bf16_state(optimizer, s, master)) specs[s].type = at::kBFloat16;
  return specs;
}

}  // namespace zero

#pragma once
// StateStorage: the storage of an optimizer's states. Update rules do not depend on it, since they compute in the
// master's type.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

struct StateStorage {
  bool bf16_states = false;   // states for which bf16_state() is true are stored in bf16, rounded stochastically
  bool split_master = false;  // a master is stored as its bf16 weight and a 16-bit remainder
  std::uint64_t seed = 0;     // for stochastic rounding

  bool operator==(const StateStorage&) const = default;
};

/// Returns true if the state may be in bf16. It must have one fp32 value per element and start as zeros. A state that
/// starts as a copy of the weights is compared with them, so it must stay exact.
bool bf16_state(const Optimizer& optimizer, std::size_t state, at::ScalarType master);

/// Returns the optimizer's states as they are stored.
std::vector<StateSpec> stored_states(const Optimizer& optimizer, at::ScalarType master, const StateStorage& storage);

/// Returns why the optimizers of the run and its groups have no state that can be in bf16, and the remedy. Returns none
/// if some state can.
std::optional<std::string> why_no_bf16_states(const OptimizerOptions& options, at::ScalarType master);

}  // namespace zero

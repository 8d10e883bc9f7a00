#pragma once
// StateStorage: the types in which an optimizer's states are stored. Rules know nothing of it: they compute in the master's
// type.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

struct StateStorage {
  bool bf16_states = false;   // states that bf16_state() allows are in bf16, rounded stochastically after each update
  bool split_master = false;  // a master is its bf16 weight and a remainder of 16 bits
  std::uint64_t seed = 0;     // of the rounding

  bool operator==(const StateStorage&) const = default;
};

/// True if a state may be in bf16: it has one fp32 number for each element, and follows the gradients. A state that starts
/// as the weights is compared with them, and stays exact.
bool bf16_state(const Optimizer& optimizer, std::size_t state, at::ScalarType master);

/// The optimizer's states as they are stored.
std::vector<StateSpec> stored_states(const Optimizer& optimizer, at::ScalarType master, const StateStorage& storage);

/// The reason why no optimizer, of the run or of a group, keeps a state in bf16, with the remedy; none: one does.
std::optional<std::string> why_no_bf16_states(const OptimizerOptions& options, at::ScalarType master);

}  // namespace zero

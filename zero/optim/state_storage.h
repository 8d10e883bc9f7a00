#pragma once
// StateStorage: how what an optimizer keeps of each element is stored, which rules know nothing of: they compute in the
// master's type.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

struct StateStorage {
  bool bf16_states = false;   // what bf16_state() allows is in bf16, rounded stochastically after each update
  bool split_master = false;  // a master is its bf16 weight and a remainder of 16 bits
  std::uint64_t seed = 0;     // of the rounding

  bool operator==(const StateStorage&) const = default;
};

/// True if a state may be in bf16: one fp32 number an element, that follows the gradients. What starts as the weights is
/// compared with them, and stays exact.
bool bf16_state(const Optimizer& optimizer, std::size_t state, at::ScalarType master);

/// The optimizer's states as they are stored.
std::vector<StateSpec> stored_states(const Optimizer& optimizer, at::ScalarType master, const StateStorage& storage);

/// Why these optimizers, that of the run and those of groups, keep no state in bf16, and the remedy; none: one does.
std::optional<std::string> why_no_bf16_states(const OptimizerOptions& options, at::ScalarType master);

}  // namespace zero

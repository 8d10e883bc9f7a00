#include "zero/optim/state_storage.h"

#include <algorithm>

#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

bool keeps_bf16(const OptimizerOptions& options, at::ScalarType master) {
  const std::unique_ptr<Optimizer> optimizer = optimizer_row(options.name).make(options);
  return stored_states(*optimizer, master, {.bf16_states = true}) != optimizer->states(master);
}

}  // namespace

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

std::optional<std::string> why_no_bf16_states(const OptimizerOptions& options, at::ScalarType master) {
  const auto group_keeps = [&](const OptimizerGroup& group) {
    return group.optimizer && *group.optimizer != options.name &&
           keeps_bf16(optimizer_row(*group.optimizer).defaults, master);
  };
  if (keeps_bf16(options, master) || std::ranges::any_of(options.groups, group_keeps)) return std::nullopt;
  const bool sgd = options.name == "sgd";
  return '"' + options.name + (sgd && options.momentum == 0 ? "\" without momentum" : "\"") +
         " keeps no fp32 number of each element that could be rounded: leave it out, or give \"fp32\"" +
         (sgd && options.momentum == 0 ? ", or give momentum" : "");
}

}  // namespace zero

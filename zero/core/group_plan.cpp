#include "zero/core/group_plan.h"

namespace zero {

std::vector<GroupSpec> plan_groups(const Units& units, UnitOrder order) {
  std::vector<GroupSpec> groups;
  GroupSpec adapters;
  for (int u = 0; u < int(units.size()); ++u) {
    GroupSpec frozen{{}, false, u}, trainable{{}, true, u};
    const auto& parameters = units[u]->parameters();
    for (int p = 0; p < int(parameters.size()); ++p)
      (parameters[p].trainable ? trainable : frozen).members.push_back({u, p});
    const bool partly_frozen = !frozen.members.empty();
    if (partly_frozen) groups.push_back(std::move(frozen));
    if (partly_frozen && order == UnitOrder::chain) {
      adapters.members.insert(adapters.members.end(), trainable.members.begin(), trainable.members.end());
    } else if (!trainable.members.empty()) {
      groups.push_back(std::move(trainable));
    }
  }
  if (!adapters.members.empty()) groups.push_back(std::move(adapters));
  return groups;
}

bool quantizes(const GroupSpec& spec, int units) { return !spec.trainable && spec.unit > 0 && spec.unit + 1 < units; }

std::vector<std::vector<TensorSpec>> specs_of(const Units& units, const GroupSpec& group) {
  std::vector<std::vector<TensorSpec>> specs;
  for (const ParameterRef& member : group.members)
    specs.push_back(units[member.unit]->parameters()[member.parameter].parts);
  return specs;
}

}  // namespace zero

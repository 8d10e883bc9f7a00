#include "zero/core/unit_groups.h"

namespace zero {

std::vector<ParameterGroup*> UnitGroups::trained() const {
  std::vector<ParameterGroup*> found;
  for (const auto& group : groups)
    if (group->is_here() && group->spec().trainable) found.push_back(group.get());
  return found;
}

void UnitGroups::end_passes() {
  while (!under_way.empty()) under_way.back()->end();
  in_step.assign(in_step.size(), false);
}

}  // namespace zero

#include "zero/core/group_plan.h"

#include <utility>

namespace zero {

namespace {

/// Parameters that are all trained or all frozen: whole ones and slices.
struct Members {
  GroupSpec whole, cut;

  Members(bool trainable, int unit, int run, int stage)
      : whole{{}, trainable, unit, false, run, stage}, cut{{}, trainable, unit, true, run, stage} {}
  bool none() const { return whole.members.empty() && cut.members.empty(); }
  void add(ParameterRef ref, const Parameter& parameter) {
    (parameter.parts.front().cut ? cut : whole).members.push_back(ref);
  }
  void add(const Members& others) {
    for (const auto& [to, from] : {std::pair(&whole, &others.whole), std::pair(&cut, &others.cut)})
      to->members.insert(to->members.end(), from->members.begin(), from->members.end());
  }
  void append_to(std::vector<GroupSpec>& groups) const {
    for (const GroupSpec* spec : {&whole, &cut})
      if (!spec->members.empty()) groups.push_back(*spec);
  }
};

}  // namespace

std::vector<GroupSpec> plan_groups(const Units& units, UnitOrder order, const std::vector<UnitRun>& given) {
  const std::vector<UnitRun> runs = given.empty() ? std::vector<UnitRun>{{0, int(units.size()), 0}} : given;
  std::vector<GroupSpec> groups, spanning;
  for (int r = 0; r < int(runs.size()); ++r) {
    Members adapters(true, -1, r, runs[r].stage);
    for (int u = runs[r].begin; u < runs[r].end; ++u) {
      Members frozen(false, u, r, runs[r].stage), trainable(true, u, r, runs[r].stage);
      const auto& parameters = units[u]->parameters();
      for (int p = 0; p < int(parameters.size()); ++p)
        (parameters[p].trainable ? trainable : frozen).add({u, p}, parameters[p]);
      frozen.append_to(groups);
      if (!frozen.none() && order == UnitOrder::chain)
        adapters.add(trainable);
      else
        trainable.append_to(groups);
    }
    adapters.append_to(spanning);
  }
  groups.insert(groups.end(), spanning.begin(), spanning.end());
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

#include "zero/optim/optimizer_set.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"
#include "zero/optim/optimizer_table.h"

namespace zero {

OptimizerSet::OptimizerSet(OptimizerOptions options) : options_(std::move(options)) {
  index_of(options_.name);
  for (const OptimizerGroup& group : options_.groups) {
    matched_.emplace_back(group.match.size());
    if (group.optimizer) index_of(*group.optimizer);
  }
}

std::int64_t OptimizerSet::grain(at::ScalarType master) const {
  std::int64_t most = 1;
  for (const auto& optimizer : optimizers_) most = std::max(most, largest_grain(optimizer->states(master)));
  return most;
}

// Settings that are not of the run's own optimizer are defaults, but for the AdamW that takes what that one does not.
OptimizerOptions OptimizerSet::options_of(const std::string& name) const {
  if (name == options_.name) return options_;
  OptimizerOptions options = optimizer_row(name).defaults;
  options.lr = options_.lr;
  options.weight_decay = options_.weight_decay;
  if (name == "adamw" && (options_.name == "muon" || options_.name == "adamw8bit")) {
    options.beta1 = options_.beta1;
    options.beta2 = options_.beta2;
    options.eps = options_.eps;
  }
  return options;
}

int OptimizerSet::index_of(const std::string& name) {
  for (int i = 0; i < size(); ++i)
    if (optimizers_[std::size_t(i)]->name() == name) return i;
  optimizers_.push_back(optimizer_row(name).make(options_of(name)));
  return size() - 1;
}

const OptimizerGroup* OptimizerSet::group_of(const std::string& name) {
  const OptimizerGroup* first = nullptr;
  for (std::size_t g = 0; g < options_.groups.size(); ++g)
    for (std::size_t p = 0; p < options_.groups[g].match.size(); ++p) {
      if (fnmatch(options_.groups[g].match[p].c_str(), name.c_str(), 0) != 0) continue;
      matched_[g][p] = true;
      if (!first) first = &options_.groups[g];
    }
  return first;
}

TensorRule OptimizerSet::rule_of(const std::string& name, const TensorTraits& tensor) {
  const OptimizerGroup* group = group_of(name);
  int optimizer = index_of(group && group->optimizer ? *group->optimizer : options_.name);
  if (!(*this)[optimizer].takes(tensor)) optimizer = index_of("adamw");
  double lr = options_.lr;
  if (options_.name == "muon" && (*this)[optimizer].name() == "adamw") lr = options_.lr_adamw;
  if (group && group->lr) lr = *group->lr;
  TensorRule rule{optimizer, options_.lr > 0 ? lr / options_.lr : 1, decays(tensor.shape) ? options_.weight_decay : 0};
  if (group && group->weight_decay) rule.weight_decay = *group->weight_decay;
  return rule;
}

void OptimizerSet::check_patterns() const {
  for (std::size_t g = 0; g < matched_.size(); ++g)
    for (std::size_t p = 0; p < matched_[g].size(); ++p)
      if (!matched_[g][p])
        throw InputError("[[optimizer.group]] match = \"" + options_.groups[g].match[p] +
                         "\": no trained tensor has such a name; names are those of the model's files, as "
                         "\"model.layers.0.mlp.down_proj.weight\", and * stands for any characters");
}

}  // namespace zero

#include "zero/optim/optimizer_set.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// "950", "12.4k", "7.5M"
std::string short_count(std::int64_t number) {
  if (number < 10'000) return std::to_string(number);
  double value = double(number);
  const char* unit = "";
  for (const char* next : {"k", "M", "B"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  char word[32];
  std::snprintf(word, sizeof word, "%.1f%s", value, unit);
  return word;
}

}  // namespace

GroupSettings group_settings(const OptimizerOptions& run, const OptimizerGroup& group) {
  const std::string& name = group.optimizer ? *group.optimizer : run.name;
  const OptimizerOptions& base = name == run.name ? run : optimizer_row(name).defaults;
  return {.optimizer = name,
          .lr = group.lr.value_or(base.lr),
          .lr_adamw = group.lr_adamw.value_or(base.lr_adamw),
          .has_own_lr = group.lr.has_value() || name != run.name,
          .weight_decay = base.weight_decay};
}

std::string where(const OptimizerGroup& group) {
  return group.place.empty() ? "optimizer settings: group" : group.place + ": [[optimizer.group]]";
}

OptimizerSet::OptimizerSet(OptimizerOptions options) : options_(std::move(options)) {
  index_of(options_.name);
  for (const OptimizerGroup& group : options_.groups) {
    parts_.push_back({group_settings(options_, group), std::vector<bool>(group.match.size())});
    index_of(parts_.back().settings.optimizer);
  }
  parts_.push_back({group_settings(options_, {}), {}});
}

std::int64_t OptimizerSet::grain(at::ScalarType master) const {
  std::int64_t most = 1;
  for (const auto& optimizer : optimizers_) most = std::max(most, largest_grain(optimizer->states(master)));
  return most;
}

double OptimizerSet::own_lr(int optimizer, double run_lr, double schedule) const {
  const std::string& name = (*this)[optimizer].name();
  if (name == options_.name && run_lr > 0) return run_lr;
  for (const Part& part : parts_)
    if (part.settings.optimizer == name && part.settings.has_own_lr && part.settings.lr > 0)
      return part.settings.lr * schedule;
  return 0;
}

// Optimizers other than the run's have default settings, except the AdamW that updates tensors which the run's
// optimizer cannot.
OptimizerOptions OptimizerSet::options_of(const std::string& name) const {
  if (name == options_.name) return options_;
  OptimizerOptions options = optimizer_row(name).defaults;
  if (name == "adamw" && (options_.name == "muon" || options_.name == "adamw8bit")) {
    const OptimizerRow &run = optimizer_row(options_.name), &adamw = optimizer_row(name);
    for (const RuleSetting& setting : rule_settings())
      if (setting.takers == Takers::named_rules && takes(run, setting) && takes(adamw, setting))
        copy_setting(setting, options_, options);
  }
  return options;
}

int OptimizerSet::index_of(const std::string& name) {
  for (int i = 0; i < size(); ++i)
    if (optimizers_[std::size_t(i)]->name() == name) return i;
  optimizers_.push_back(optimizer_row(name).make(options_of(name)));
  return size() - 1;
}

std::size_t OptimizerSet::part_of(const std::string& name) {
  std::size_t first = options_.groups.size();
  for (std::size_t g = 0; g < options_.groups.size(); ++g)
    for (std::size_t p = 0; p < options_.groups[g].match.size(); ++p) {
      if (!matches(options_.groups[g].match[p], name)) continue;
      parts_[g].matched[p] = true;
      if (first > g) first = g;
      if (first < g && parts_[g].before < 0) parts_[g].before = int(first);
    }
  return first;
}

TensorRule OptimizerSet::rule_of(const std::string& name, const TensorTraits& tensor) {
  const std::size_t at = part_of(name);
  Part& part = parts_[at];
  int optimizer = index_of(part.settings.optimizer);
  const bool takes = (*this)[optimizer].takes(tensor);
  if (!takes) optimizer = index_of("adamw");
  Treated& treated = takes ? part.own : part.by_adamw;
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= size;
  ++treated.tensors;
  treated.elements += elements;
  names_.insert(tensor.in_block ? names_.begin() : names_.end(), name);
  TensorRule rule{.optimizer = optimizer, .own_lr = {}, .weight_decay = 0};
  if (!takes && part.settings.optimizer == "muon")
    rule.own_lr = part.settings.lr_adamw;
  else if (part.settings.has_own_lr)
    rule.own_lr = part.settings.lr;
  if (decays(tensor.shape)) rule.weight_decay = part.settings.weight_decay;
  if (at < options_.groups.size() && options_.groups[at].weight_decay)
    rule.weight_decay = *options_.groups[at].weight_decay;
  return rule;
}

void OptimizerSet::refuse_pattern(const OptimizerGroup& group, const std::string& pattern) const {
  const auto trained = [&](const char* name) { return std::find(names_.begin(), names_.end(), name) != names_.end(); };
  const bool tied =
      matches(pattern, "lm_head.weight") && !trained("lm_head.weight") && trained("model.embed_tokens.weight");
  std::string why = "; names are as \"" + (names_.empty() ? "" : names_.front()) +
                    "\", and patterns as a shell's: * stands for any characters, ? for one, [ab] for one of these";
  if (tied) why = ": the head is tied to the embedding, and lm_head.weight is model.embed_tokens.weight";
  throw InputError(where(group) + " match = \"" + pattern + "\": no trained tensor has such a name" + why);
}

// A muon group's lr applies to its matrices, and lr_adamw to its other tensors.
void OptimizerSet::check_rates(std::size_t g) const {
  const OptimizerGroup& group = options_.groups[g];
  const Part& part = parts_[g];
  if (part.settings.optimizer != "muon") return;
  const std::string none = ": none of the tensors that it matches is a matrix in a block, which Muon is for; ";
  if (part.own.tensors == 0 && group.optimizer)
    throw InputError(where(group) + " optimizer = \"muon\"" + none + "give optimizer = \"adamw\"");
  if (part.own.tensors == 0 && group.lr)
    throw InputError(where(group) + " lr" + none + "give lr_adamw, the rate at which AdamW takes them");
  if (part.by_adamw.tensors == 0 && group.lr_adamw)
    throw InputError(where(group) + " lr_adamw: all tensors that it matches are matrices in blocks, at Muon's rate; " +
                     "give lr");
}

void OptimizerSet::check_groups() const {
  for (std::size_t g = 0; g < options_.groups.size(); ++g) {
    const OptimizerGroup& group = options_.groups[g];
    const Part& part = parts_[g];
    for (std::size_t p = 0; p < group.match.size(); ++p)
      if (!part.matched[p]) refuse_pattern(group, group.match[p]);
    if (part.own.tensors + part.by_adamw.tensors == 0) {
      const OptimizerGroup& before = options_.groups[std::size_t(part.before)];
      throw InputError(text(where(group), ": treats no tensor: all that it matches are in groups before it, such as ",
                            before.place.empty() ? "" : before.place + ", ", "group ", part.before + 1, " with match ",
                            before.match.front(), "; the first group that matches counts: put this one before"));
    }
    check_rates(g);
  }
}

std::string OptimizerSet::describe(const Part& part, const std::optional<double>& decay_of_all) const {
  const GroupSettings& s = part.settings;
  const auto one = [](const std::string& name, double lr, const Treated& treated) {
    return treated.tensors == 0
               ? ""
               : text(name, " lr ", lr, " on ", treated.tensors, treated.tensors == 1 ? " tensor (" : " tensors (",
                      short_count(treated.elements), "), ");
  };
  // AdamW alone would look like a run without the optimizer that was asked for.
  const std::string none =
      part.own.tensors > 0 ? "" : text(s.optimizer, " (", optimizer_row(s.optimizer).doc, ") takes none of them: ");
  return none + one(s.optimizer, s.lr, part.own) +
         one("adamw", s.optimizer == "muon" ? s.lr_adamw : s.lr, part.by_adamw) +
         text("weight decay ", decay_of_all.value_or(s.weight_decay));
}

std::vector<std::string> OptimizerSet::describe() const {
  std::vector<std::string> lines;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    if (parts_[p].own.tensors + parts_[p].by_adamw.tensors == 0) continue;
    const bool is_group = p < options_.groups.size();
    lines.push_back(text("optimizer", is_group ? text(", group ", p + 1) : "", ": ",
                         describe(parts_[p], is_group ? options_.groups[p].weight_decay : std::nullopt)));
  }
  return lines;
}

}  // namespace zero

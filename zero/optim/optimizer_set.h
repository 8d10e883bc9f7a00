#pragma once
// OptimizerSet: the optimizers of a run, and the optimizer and the rate of each tensor.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

/// How a tensor is treated.
struct TensorRule {
  int optimizer = 0;             // index in the set
  std::optional<double> own_lr;  // at the peak of the schedule; none: the run's
  double lr_scale = 1;           // either is multiplied by it
  double weight_decay = 0;

  /// The rate of a step. `run_lr`: the run's; `schedule`: the part of their peak that rates are at.
  double lr(double run_lr, double schedule) const { return lr_scale * (own_lr ? *own_lr * schedule : run_lr); }
  bool operator==(const TensorRule&) const = default;
};

/// The settings of a group, with those that it takes from the run or from its optimizer's defaults.
struct GroupSettings {
  std::string optimizer;
  double lr = 0, lr_adamw = 0;
  bool has_own_lr = false;  // `lr` differs from the run's
  double weight_decay = 0;  // of tensors of two or more dimensions; a group's own value is of all tensors
};

/// A setting that the group does not give is the run's where it has the run's optimizer, else that optimizer's default.
GroupSettings group_settings(const OptimizerOptions& run, const OptimizerGroup& group);

/// The beginning of messages about a group: "config.toml:12: [[optimizer.group]]", or a program's name for it.
std::string where(const OptimizerGroup& group);

class OptimizerSet {
 public:
  explicit OptimizerSet(OptimizerOptions options);

  /// Returns the rule of the first group whose pattern matches the name, or of the run's own settings. AdamW takes a
  /// tensor that the group's optimizer does not take. Adds an optimizer that the set lacks.
  TensorRule rule_of(const std::string& name, const TensorTraits& tensor);
  /// Call it after the last rule_of(). Throws InputError for a pattern that no tensor matched, and for a group whose
  /// tensors are all in earlier groups. Also throws for a rate that no tensor of its group has.
  void check_groups() const;
  /// Call it after the last rule_of(). Returns lines for people, one for each group and one for the rest: optimizers,
  /// rates and the tensors that they treat.
  std::vector<std::string> describe() const;

  /// Most elements of a tensor that share a number in some state. Tensors and shards begin at multiples of it.
  std::int64_t grain(at::ScalarType master) const;
  /// The optimizer's own learning rate in a step, the same for all tensors. It is the run's; where the run has another
  /// optimizer or the rate 0, it is that of the first group with a rate above 0. Arguments as of TensorRule::lr().
  double own_lr(int optimizer, double run_lr, double schedule) const;

  int size() const { return int(optimizers_.size()); }
  const Optimizer& operator[](int optimizer) const { return *optimizers_.at(std::size_t(optimizer)); }

 private:
  struct Treated {
    int tensors = 0;
    std::int64_t elements = 0;
  };
  /// A group, or the tensors that no group matches.
  struct Part {
    GroupSettings settings;
    std::vector<bool> matched;  // by pattern
    int before = -1;            // index of an earlier group that treats a tensor which this one matches
    Treated own, by_adamw;      // tensors of the optimizer, and those that it does not take
  };

  int index_of(const std::string& name);
  OptimizerOptions options_of(const std::string& name) const;
  std::size_t part_of(const std::string& name);
  void check_rates(std::size_t group) const;
  [[noreturn]] void refuse_pattern(const OptimizerGroup& group, const std::string& pattern) const;
  std::string describe(const Part& part, const std::optional<double>& decay_of_all) const;

  OptimizerOptions options_;
  std::vector<Part> parts_;         // of each group, then of the rest
  std::vector<std::string> names_;  // of tensors; those in blocks come first
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

}  // namespace zero

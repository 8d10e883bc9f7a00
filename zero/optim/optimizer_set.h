#pragma once
// OptimizerSet: the optimizers of a run, and each tensor's optimizer and rate.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

/// The optimizer and rate of a tensor.
struct TensorRule {
  int optimizer = 0;             // index in the set
  std::optional<double> own_lr;  // at the peak of the schedule; none: the run's rate
  double lr_scale = 1;           // factor for either rate
  double weight_decay = 0;

  /// Returns the rate of a step. `run_lr`: the run's rate. `schedule`: the current fraction of the rates' peak values.
  double lr(double run_lr, double schedule) const { return lr_scale * (own_lr ? *own_lr * schedule : run_lr); }
  bool operator==(const TensorRule&) const = default;
};

/// All settings of a group, including those from the run or from the optimizer's defaults.
struct GroupSettings {
  std::string optimizer;
  double lr = 0, lr_adamw = 0;
  bool has_own_lr = false;  // `lr` differs from the run's
  double weight_decay = 0;  // for tensors with two or more dimensions; a group's own value applies to all its tensors
};

/// If the group does not give a setting, returns the run's value for a group with the run's optimizer, otherwise the
/// group's optimizer's default.
GroupSettings group_settings(const OptimizerOptions& run, const OptimizerGroup& group);

/// Returns the start of messages about a group: "config.toml:12: [[optimizer.group]]", or a program's name for the
/// group.
std::string where(const OptimizerGroup& group);

class OptimizerSet {
 public:
  explicit OptimizerSet(OptimizerOptions options);

  /// Returns the rule of the first group whose pattern matches the name, otherwise the rule of the run's own settings.
  /// AdamW updates tensors that the group's optimizer cannot. Adds the optimizer if the set lacks it.
  TensorRule rule_of(const std::string& name, const TensorTraits& tensor);
  /// Call it after the last rule_of(). Throws InputError for a pattern that no tensor matched, and for a group whose
  /// tensors are all in earlier groups. Also throws for a rate that does not apply to any of its group's tensors.
  void check_groups() const;
  /// Call it after the last rule_of(). Returns human-readable lines, one for each group and one for all other tensors:
  /// optimizers, rates and the tensors that they apply to.
  std::vector<std::string> describe() const;

  /// Returns the largest number of elements that share one value in a state. Tensors and shards begin at multiples of
  /// it.
  std::int64_t grain(at::ScalarType master) const;
  /// Returns the optimizer's own learning rate in a step, the same for all tensors. It is the run's rate. If the run
  /// has another optimizer or the rate 0, it is the rate of the first group with a rate above 0. Arguments are as in
  /// TensorRule::lr().
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
    int before = -1;            // index of an earlier group that got a tensor which this group also matches
    Treated own, by_adamw;      // tensors that the optimizer updates, and those that it leaves to AdamW
  };

  int index_of(const std::string& name);
  OptimizerOptions options_of(const std::string& name) const;
  std::size_t part_of(const std::string& name);
  void check_rates(std::size_t group) const;
  [[noreturn]] void refuse_pattern(const OptimizerGroup& group, const std::string& pattern) const;
  std::string describe(const Part& part, const std::optional<double>& decay_of_all) const;

  OptimizerOptions options_;
  std::vector<Part> parts_;         // one for each group, then one for all other tensors
  std::vector<std::string> names_;  // names of tensors; those in blocks come first
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

}  // namespace zero

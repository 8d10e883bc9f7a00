#pragma once
// OptimizerSet: the optimizers of a run, and the optimizer and the rate of each tensor.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

/// The learning rates of one step.
struct StepRates {
  double lr = 0;        // the run's rate, of tensors without a rate of their own
  double schedule = 1;  // fraction of its peak that the run's rate is at; multiplies other rates
};

/// The treatment of a tensor.
struct TensorRule {
  int optimizer = 0;             // index in the set
  std::optional<double> own_lr;  // at the peak of the schedule; none: the run's
  double lr_scale = 1;           // factor of either rate
  double weight_decay = 0;

  double lr(const StepRates& rates) const { return lr_scale * (own_lr ? *own_lr * rates.schedule : rates.lr); }
  bool operator==(const TensorRule&) const = default;
};

/// The settings of a group, with its defaults filled in.
struct GroupSettings {
  std::string optimizer;
  double lr = 0, lr_adamw = 0;
  bool has_own_lr = false;  // `lr` differs from the run's
  double weight_decay = 0;  // of tensors of two or more dimensions; a group's own value is of all tensors
};

/// Fills in the settings that the group leaves out. They are the run's if it has the run's optimizer, otherwise that
/// optimizer's defaults.
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
  /// The optimizer's own learning rate, whichever tensor is updated: the run's rate if the run has this optimizer and a
  /// rate above 0. Otherwise it is the first rate above 0 of a group with this optimizer, or 0.
  double own_lr(int optimizer, const StepRates& rates) const;

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

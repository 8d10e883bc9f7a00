#pragma once
// OptimizerSet: the optimizers of a run, and which of them treats a tensor, at which rate.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

/// How a tensor is treated.
struct TensorRule {
  int optimizer = 0;             // of the set
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
  bool has_own_lr = false;  // `lr` is not the run's
  double weight_decay = 0;  // of tensors of two or more dimensions, unless the group has one for all
};

/// A setting that the group does not give is the run's where it has the run's optimizer, else that optimizer's default.
GroupSettings group_settings(const OptimizerOptions& run, const OptimizerGroup& group);

/// "config.toml:12: [[optimizer.group]]", or what a program calls it: the beginning of messages about a group.
std::string where(const OptimizerGroup& group);

class OptimizerSet {
 public:
  explicit OptimizerSet(OptimizerOptions options);

  /// By the first group whose pattern matches the name, else by the run's own settings; AdamW where that optimizer does
  /// not take the tensor. An optimizer that the set has not yet is added.
  TensorRule rule_of(const std::string& name, const TensorTraits& tensor);
  /// After the last rule_of(): throws InputError for the first pattern which no tensor matched, for a group that treats
  /// no tensor since others come before it, and for a rate of one that none of its tensors has.
  void check_groups() const;
  /// For people, after the last rule_of(), a line for each group and one for the rest: optimizers, rates and what they
  /// treat.
  std::vector<std::string> describe() const;

  /// The most elements of a tensor that share a number in some state: tensors and shards begin at multiples of it.
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
  /// A group, or what no group matches.
  struct Part {
    GroupSettings settings;
    std::vector<bool> matched;  // by pattern
    int before = -1;            // a group that treats a tensor which this one matches
    Treated own, by_adamw;      // by the optimizer, and what it does not take
  };

  int index_of(const std::string& name);
  OptimizerOptions options_of(const std::string& name) const;
  std::size_t part_of(const std::string& name);
  void check_rates(std::size_t group) const;
  [[noreturn]] void refuse_pattern(const OptimizerGroup& group, const std::string& pattern) const;
  std::string describe(const Part& part, const std::optional<double>& decay_of_all) const;

  OptimizerOptions options_;
  std::vector<Part> parts_;         // by group, and last the rest
  std::vector<std::string> names_;  // of tensors, those in blocks first
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

}  // namespace zero

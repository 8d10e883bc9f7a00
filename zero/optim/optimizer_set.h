#pragma once
// OptimizerSet: the optimizers of a run, and which of them treats a tensor, at which rate.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

/// The learning rates of one step.
struct StepRates {
  double lr = 0;        // of tensors that have none of their own: the run's
  double schedule = 1;  // what the others' own are multiplied by, the part of its peak that the run's rate is at
};

/// How a tensor is treated.
struct TensorRule {
  int optimizer = 0;             // of the set
  std::optional<double> own_lr;  // at the peak of the schedule; none: the run's
  double lr_scale = 1;           // what either is multiplied by
  double weight_decay = 0;

  double lr(const StepRates& rates) const { return lr_scale * (own_lr ? *own_lr * rates.schedule : rates.lr); }
  bool operator==(const TensorRule&) const = default;
};

/// What a group comes to.
struct GroupSettings {
  std::string optimizer;
  double lr = 0, lr_adamw = 0;
  bool has_own_lr = false;  // `lr` is not the run's
  double weight_decay = 0;  // of tensors of two or more dimensions, unless the group has one for all
};

/// What the group does not say is the run's where it has the run's optimizer, else that optimizer's default.
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
  /// The optimizer's own learning rate, whichever tensors it is about: the run's, or where the run has another optimizer or
  /// the rate 0 that of the first group which has one above 0.
  double own_lr(int optimizer, const StepRates& rates) const;

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

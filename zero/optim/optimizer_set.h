#pragma once
// OptimizerSet: the optimizers of a run, and which of them treats a tensor, at which rate.
#include <memory>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

/// How a tensor is treated.
struct TensorRule {
  int optimizer = 0;    // of the set
  double lr_scale = 1;  // of the run's learning rate
  double weight_decay = 0;

  bool operator==(const TensorRule&) const = default;
};

class OptimizerSet {
 public:
  explicit OptimizerSet(OptimizerOptions options);

  /// By the first group whose pattern matches the name, else by the run's own settings; AdamW where that optimizer does
  /// not take the tensor. An optimizer that the set has not yet is added.
  TensorRule rule_of(const std::string& name, const TensorTraits& tensor);
  /// Throws InputError that names the first pattern which no tensor matched.
  void check_patterns() const;

  /// The most elements of a tensor that share a number in some state: tensors and shards begin at multiples of it.
  std::int64_t grain(at::ScalarType master) const;

  int size() const { return int(optimizers_.size()); }
  const Optimizer& operator[](int optimizer) const { return *optimizers_.at(std::size_t(optimizer)); }

 private:
  int index_of(const std::string& name);
  OptimizerOptions options_of(const std::string& name) const;
  const OptimizerGroup* group_of(const std::string& name);

  OptimizerOptions options_;
  std::vector<std::vector<bool>> matched_;  // by group, by pattern
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

}  // namespace zero

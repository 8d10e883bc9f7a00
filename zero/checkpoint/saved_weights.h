#pragma once
// SavedWeights: the weights in a checkpoint as a source of weights: masters, and frozen ones where it holds them.
#include <memory>
#include <string>

#include "models/weight_source.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {

class SavedWeights : public WeightSource {
 public:
  /// `model`: its name and a slash, where the checkpoint is of several.
  explicit SavedWeights(std::shared_ptr<SavedStates> states, std::string model = {})
      : states_(std::move(states)), model_(std::move(model)) {}

  void check(const std::vector<TensorSpec>& tensors) override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::shared_ptr<SavedStates> states_;
  std::string model_;
};

}  // namespace zero

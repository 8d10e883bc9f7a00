#pragma once
// SavedWeights: a weight source that reads master weights, and frozen weights if saved, from a checkpoint.
#include <memory>
#include <string>

#include "models/weight_source.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {

class SavedWeights : public WeightSource {
 public:
  /// `model`: the model's name and a slash if the checkpoint holds several models.
  explicit SavedWeights(std::shared_ptr<SavedStates> states, std::string model = {})
      : states_(std::move(states)), model_(std::move(model)) {}

  void check(const std::vector<TensorSpec>& tensors) override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::shared_ptr<SavedStates> states_;
  std::string model_;
};

}  // namespace zero

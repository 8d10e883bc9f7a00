#pragma once
// SavedWeights: the weights in a checkpoint as a source of weights: masters, and frozen ones where it holds them.
#include <memory>

#include "models/weight_source.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {

class SavedWeights : public WeightSource {
 public:
  explicit SavedWeights(std::shared_ptr<SavedStates> states) : states_(std::move(states)) {}

  void check(const std::vector<TensorSpec>& tensors) override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::shared_ptr<SavedStates> states_;
};

}  // namespace zero

#pragma once
// HfWeights: the tensors of a Hugging Face directory as a WeightSource.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/formats/hf_directory.h"
#include "models/weight_source.h"

namespace zero {

/// Only the bytes asked for are read.
class HfWeights : public WeightSource {
 public:
  explicit HfWeights(std::shared_ptr<const HfDirectory> directory);

  /// Also tells of stored tensors that nothing asked for.
  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::string stored_name(const std::string& name) const;
  std::shared_ptr<const HfDirectory> directory_;
  std::string embedding_, head_;  // the family's names
};

}  // namespace zero

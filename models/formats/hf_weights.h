#pragma once
// HfWeights: the tensors of a Hugging Face directory as a WeightSource.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/formats/hf_directory.h"
#include "models/formats/unused_tensors.h"
#include "models/weight_source.h"

namespace zero {

/// Reads only the requested bytes.
class HfWeights : public WeightSource {
 public:
  explicit HfWeights(std::shared_ptr<const HfDirectory> directory, UnusedTensors unused = UnusedTensors::refuse);

  /// The first call also handles stored tensors that are never read (settle_unused).
  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::string stored_name(const std::string& name) const;
  void settle_the_rest(const std::set<std::string>& asked);
  std::shared_ptr<const HfDirectory> directory_;
  UnusedTensors unused_;
  bool settled_ = false;
  std::string embedding_, head_;  // the family's names
};

}  // namespace zero

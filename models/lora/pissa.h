#pragma once
// PiSSA (Meng et al. 2024), by PEFT's rule. Adapters start as the principal singular vectors of their weights, and the
// frozen base is the remainder.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/lora/lora.h"
#include "models/weight_source.h"

namespace zero {

/// The weights of a model that starts by PiSSA. With W = U S V^T cut to r in fp32, A = sqrt(S / scale) V^T, B = U
/// sqrt(S / scale), and the base is W - scale B A. A decomposition is computed at the first request for one of its
/// parts, and kept (r (in + out) floats).
class PissaWeights : public WeightSource {
 public:
  /// `others`: a source of all the model's tensors except the adapters' A and B (FreshAdapter), with the original base.
  PissaWeights(std::shared_ptr<WeightSource> others, const LoraOptions& options)
      : others_(std::move(others)), options_(options) {}

  /// Throws InputError if r exceeds the largest possible rank of a weight.
  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override { others_->check_values(); }
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

  /// A trained A or B as part of a plain adapter of rank 2r over the original base. The trained A is stacked on the
  /// start A, and B is concatenated with minus the start B, so the sum is scale (B A - B0 A0). Other tensors are
  /// returned unchanged.
  at::Tensor as_plain(const TensorSpec& tensor, const at::Tensor& value);
  /// The shape of the result of as_plain().
  static std::vector<std::int64_t> plain_shape(const TensorSpec& tensor);

 private:
  struct Factors {
    at::Tensor a, b;  // [r, in], [out, r], fp32
  };
  const Factors& factors_of(const std::string& module);

  std::shared_ptr<WeightSource> others_;
  LoraOptions options_;
  std::map<std::string, TensorSpec> adapted_;  // the weight of each adapted module
  std::map<std::string, Factors> factors_;
};

/// The options of the plain adapter: twice the rank at the same scale.
LoraOptions plain_options(LoraOptions options);

}  // namespace zero

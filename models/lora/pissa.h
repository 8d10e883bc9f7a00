#pragma once
// PiSSA (Meng et al. 2024), as in PEFT. Adapters start as the principal singular vectors of their weights. The frozen
// base keeps the remainder.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/lora/lora.h"
#include "models/weight_source.h"

namespace zero {

/// The start weights of a model with PiSSA. Let W = U S V^T, truncated to rank r in fp32. Then A = sqrt(S / scale) V^T
/// and B = U sqrt(S / scale). The base is W - scale B A. A weight is decomposed when A, B or the base is first read,
/// and the factors (r (in + out) floats) are kept.
class PissaWeights : public WeightSource {
 public:
  /// `others` supplies all the model's tensors, with the original base, except the adapters' A and B (FreshAdapter).
  PissaWeights(std::shared_ptr<WeightSource> others, const LoraOptions& options)
      : others_(std::move(others)), options_(options) {}

  /// Throws InputError if r exceeds the largest possible rank of a weight.
  void check(const std::vector<TensorSpec>& tensors) override;
  void check_values() override { others_->check_values(); }
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

  /// Converts a trained A or B to a plain adapter of rank 2r over the original base. The trained A is stacked on the
  /// initial A0, and B is concatenated with -B0, so the adapter adds scale (B A - B0 A0). Other tensors are returned
  /// unchanged.
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

/// The options of the plain adapter, which has twice the rank and the same scale.
LoraOptions plain_options(LoraOptions options);

}  // namespace zero

#pragma once
// The parameters of a decoder's units, and its norms.
#include <optional>

#include "models/decoder/decoder_names.h"
#include "models/model_config.h"
#include "models/nn/linear.h"
#include "models/parallel/activations.h"
#include "models/unit.h"

namespace zero {

Parameter matrix_parameter(std::vector<TensorSpec> parts, const ModelConfig& config);
/// The same, for a matrix whose output the residual stream adds.
Parameter residual_matrix_parameter(std::vector<TensorSpec> parts, const ModelConfig& config);
Parameter bias_parameter(std::vector<TensorSpec> parts);

/// A norm of the configuration's kind over rows of the model's width. It refers to the unit's parameters by index.
class DecoderNorm {
 public:
  /// No norm.
  DecoderNorm() = default;
  /// Declares the weight, and for a layer norm the bias. If the module name is empty, there is no norm.
  DecoderNorm(std::vector<Parameter>& parameters, const std::string& module, const ModelConfig& config);

  bool exists() const { return weight_ >= 0; }
  /// The norm's weight in the form that multiplies (rms_weight).
  at::Tensor weight(const std::vector<Parameter>& parameters) const;
  /// Returns the norm of x, or x itself if there is no norm.
  TokenPart apply(const std::vector<Parameter>& parameters, const TokenPart& x) const;
  /// Returns the same as a product's input: an RMSNorm is fused into the product.
  LinearInput input(const std::vector<Parameter>& parameters, const TokenPart& x) const;
  /// Appends the indices of the norm's parameters.
  void list(std::vector<int>& indices) const;

 private:
  int weight_ = -1, bias_ = -1;
  NormKind kind_ = NormKind::rms;
  double eps_ = 0;
};

/// The multiplier of an RMSNorm for a stored weight: the weight itself, or the weight plus 1 (computed in fp32 even for
/// narrower types).
at::Tensor rms_weight(const at::Tensor& stored, NormKind kind);

}  // namespace zero

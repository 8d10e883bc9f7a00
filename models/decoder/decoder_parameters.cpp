#include "models/decoder/decoder_parameters.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "models/nn/heads.h"
#include "models/nn/layer_norm.h"

namespace zero {

Parameter matrix_parameter(std::vector<TensorSpec> parts, const ModelConfig& config) {
  return {std::move(parts), true, Init::normal, config.initializer_range, {}};
}

Parameter residual_matrix_parameter(std::vector<TensorSpec> parts, const ModelConfig& config) {
  return {
      std::move(parts), true, Init::normal, config.residual_initializer_range.value_or(config.initializer_range), {}};
}

Parameter bias_parameter(std::vector<TensorSpec> parts) { return {std::move(parts), true, Init::zeros, 0, {}}; }

at::Tensor rms_weight(const at::Tensor& stored, NormKind kind) {
  if (kind == NormKind::rms) return stored;
  return stored.to(at::toOpMathType(stored.scalar_type())).add(1);
}

DecoderNorm::DecoderNorm(std::vector<Parameter>& parameters, const std::string& module, const ModelConfig& config)
    : kind_(config.norm), eps_(config.rms_norm_eps) {
  if (module.empty()) return;
  weight_ = int(parameters.size());
  const Init start = kind_ == NormKind::rms_plus_one ? Init::zeros : Init::ones;
  parameters.push_back({{{module + ".weight", {config.hidden_size}}}, true, start, 0, {}});
  if (kind_ != NormKind::layer) return;
  bias_ = int(parameters.size());
  parameters.push_back(bias_parameter({{module + ".bias", {config.hidden_size}}}));
}

at::Tensor DecoderNorm::weight(const std::vector<Parameter>& parameters) const {
  return rms_weight(parameters[weight_].tensor, kind_);
}

TokenPart DecoderNorm::apply(const std::vector<Parameter>& parameters, const TokenPart& x) const {
  if (!exists()) return x;
  if (kind_ == NormKind::layer) return {layer_norm(x.x, parameters[weight_].tensor, parameters[bias_].tensor, eps_)};
  return {norm_groups(x.x, weight(parameters), eps_)};
}

LinearInput DecoderNorm::input(const std::vector<Parameter>& parameters, const TokenPart& x) const {
  if (!exists() || kind_ == NormKind::layer) return LinearInput::plain(apply(parameters, x).x);
  return LinearInput::rms_norm(x.x, weight(parameters), eps_);
}

void DecoderNorm::list(std::vector<int>& indices) const {
  for (const int index : {weight_, bias_})
    if (index >= 0) indices.push_back(index);
}

}  // namespace zero

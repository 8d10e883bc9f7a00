#include "models/decoder/projection.h"

#include <ATen/ATen.h>

#include <numeric>

#include "models/decoder/decoder_parameters.h"

namespace zero {

Projection::Projection(Unit& unit, const ProjectionModules& modules, const ModelConfig& config,
                       const DecoderNames& names)
    : unit_(unit), input_first_(names.input_first) {
  std::vector<std::int64_t> rows = modules.rows;
  if (modules.names.size() == 1) rows = {std::accumulate(rows.begin(), rows.end(), std::int64_t(0))};
  std::vector<TensorSpec> weights, biases;
  for (std::size_t i = 0; i < modules.names.size(); ++i) {
    const std::string module = unit.name() + "." + modules.names[i];
    weights.push_back({module + ".weight", {rows[i], modules.inputs}});
    if (input_first_) weights.back().shape = {modules.inputs, rows[i]};
    biases.push_back({module + ".bias", {rows[i]}});
  }
  std::vector<Parameter>& parameters = unit.parameters();
  weight_ = int(parameters.size());
  parameters.push_back(matrix_parameter(std::move(weights), config));
  parameters.back().input_first = input_first_;
  if (!modules.bias) return;
  bias_ = int(parameters.size());
  parameters.push_back(bias_parameter(std::move(biases)));
}

at::Tensor Projection::apply(LinearInput input, const at::Tensor& residual, const ForwardContext& context) const {
  input.keep = context.keep_inputs;
  const std::int64_t sequence = input.x.size(1);
  return linear(input, weight(), residual, adapters(context, sequence), bias());
}

LinearBeside Projection::apply_beside(LinearInput input, const at::Tensor& x, const ForwardContext& context) const {
  if (input.kind != LinearInput::Kind::rms_norm) return {apply(std::move(input), {}, context), x};
  input.keep = context.keep_inputs;
  return linear_beside(input, weight(), adapters(context, x.size(1)), bias());
}

void Projection::list(std::vector<int>& indices) const {
  for (const int index : {weight_, bias_})
    if (index >= 0) indices.push_back(index);
  for (const Adapter& adapter : unit_.adapters()) {
    if (adapter.parameter != weight_) continue;
    for (const int index : {adapter.a, adapter.b, adapter.magnitude})
      if (index >= 0) indices.push_back(index);
  }
}

at::Tensor Projection::weight() const { return input_first_ ? tensor(weight_).t() : tensor(weight_); }

at::Tensor Projection::bias() const { return bias_ < 0 ? at::Tensor() : tensor(bias_); }

std::vector<LowRank> Projection::adapters(const ForwardContext& context, std::int64_t sequence) const {
  std::vector<LowRank> found;
  for (const Adapter& adapter : unit_.adapters())
    if (adapter.parameter == weight_) found.push_back(low_rank(adapter, context, sequence));
  return found;
}

LowRank Projection::low_rank(const Adapter& adapter, const ForwardContext& context, std::int64_t sequence) const {
  LowRank tensors{tensor(adapter.a), tensor(adapter.b),
                  adapter.magnitude < 0 ? at::Tensor() : tensor(adapter.magnitude)};
  tensors.begin = adapter.begin;
  tensors.scale = adapter.scale;
  tensors.dropout = context.training ? adapter.dropout : 0.0;
  tensors.seed = context.seed ^ adapter.seed;
  tensors.first_sample = context.first_sample;
  tensors.sequence = sequence;
  return tensors;
}

}  // namespace zero

#include "models/decoder/projection.h"

#include <ATen/ATen.h>

#include <numeric>

#include "models/decoder/decoder_parameters.h"
#include "models/decoder/dropout_place.h"

namespace zero {

Projection::Projection(Unit& unit, const ProjectionModules& modules, const ModelConfig& config,
                       const DecoderNames& names, ProductCut cut, SlicePlace place)
    : unit_(unit),
      input_first_(names.input_first),
      cut_(cut),
      first_input_(cut == ProductCut::inputs ? modules.inputs * place.rank / place.ranks : 0) {
  const bool outputs = cut == ProductCut::outputs;
  std::vector<TensorSpec> weights, biases;
  for (std::size_t i = 0; i < modules.names.size(); ++i) {
    const std::string module = unit.name() + "." + modules.names[i];
    // A single fused module has all parts, and each part is split.
    const std::vector<std::int64_t> parts = modules.names.size() == 1 ? modules.rows : std::vector{modules.rows[i]};
    const std::int64_t rows = std::accumulate(parts.begin(), parts.end(), std::int64_t(0));
    TensorSpec weight{module + ".weight", {rows, modules.inputs}}, bias{module + ".bias", {rows}};
    if (input_first_) weight.shape = {modules.inputs, rows};
    weights.push_back(slice_of(std::move(weight), int(outputs == input_first_),
                               outputs ? parts : std::vector{modules.inputs}, place));
    biases.push_back(outputs ? slice_of(std::move(bias), 0, parts, place) : std::move(bias));
  }
  std::vector<Parameter>& parameters = unit.parameters();
  weight_ = int(parameters.size());
  parameters.push_back(outputs ? matrix_parameter(std::move(weights), config)
                               : residual_matrix_parameter(std::move(weights), config));
  parameters.back().input_first = input_first_;
  if (!modules.bias) return;
  bias_ = int(parameters.size());
  parameters.push_back(bias_parameter(std::move(biases)));
}

at::Tensor Projection::apply(LinearInput input, const at::Tensor& residual, const ForwardContext& context) const {
  set_flow(input, context);
  return linear(input, weight(), residual, adapters(input, context), bias());
}

LinearBeside Projection::apply_beside(LinearInput input, const at::Tensor& x, const ForwardContext& context) const {
  if (input.kind != LinearInput::Kind::rms_norm) return {apply(std::move(input), {}, context), x};
  set_flow(input, context);
  return linear_beside(input, weight(), adapters(input, context), bias());
}

void Projection::set_flow(LinearInput& input, const ForwardContext& context) const {
  input.keep = context.keep_inputs;
  input.tokens = TokenSplit(context);
  if (input.tokens.divides()) input.flow = cut_ == ProductCut::outputs ? TokenFlow::gathers : TokenFlow::scatters;
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

std::vector<LowRank> Projection::adapters(const LinearInput& input, const ForwardContext& context) const {
  std::vector<LowRank> found;
  for (const Adapter& adapter : unit_.adapters())
    if (adapter.parameter == weight_) found.push_back(low_rank(adapter, input, context));
  return found;
}

LowRank Projection::low_rank(const Adapter& adapter, const LinearInput& input, const ForwardContext& context) const {
  LowRank tensors{tensor(adapter.a), tensor(adapter.b),
                  adapter.magnitude < 0 ? at::Tensor() : tensor(adapter.magnitude)};
  tensors.begin = adapter.begin;
  tensors.scale = adapter.scale;
  tensors.dropout = dropout_of(context, adapter.dropout, adapter.seed);
  const std::int64_t row_length = context.tile.row_length > 0 ? context.tile.row_length : input.x.size(1);
  tensors.dropout.first_row = input.tokens.first() + context.tile.first;
  tensors.dropout.sequence = input.tokens.any() ? input.tokens.length() : row_length;
  if (input.flow != TokenFlow::scatters) return tensors;
  tensors.dropout.first_column = first_input_;
  tensors.sum_over_columns = [split = input.tokens](const at::Tensor& sums) { sum_over(split.ranks(), sums); };
  return tensors;
}

}  // namespace zero

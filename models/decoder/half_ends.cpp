#include "models/decoder/half_ends.h"

#include <ATen/ATen.h>

namespace zero {
namespace {

DecoderNorm norm_in(Unit& unit, const std::string& module, const ModelConfig& config) {
  return DecoderNorm(unit.parameters(), module.empty() ? "" : unit.name() + "." + module, config);
}

}  // namespace

HalfInput::HalfInput(Unit& unit, const std::string& norm, const ProjectionModules& modules, const ModelConfig& config,
                     const DecoderNames& names, SlicePlace place)
    : unit_(unit),
      norm_(norm_in(unit, norm, config)),
      product_(unit, modules, config, names, ProductCut::outputs, place) {}

HalfInput::Result HalfInput::apply(const TokenPart& x, const ForwardContext& context) const {
  const LinearBeside result = product_.apply_beside(norm_.input(unit_.parameters(), x), x.x, context);
  return {{result.y}, {result.x}};
}

void HalfInput::list(std::vector<int>& indices) const {
  norm_.list(indices);
  product_.list(indices);
}

HalfOutput::HalfOutput(Unit& unit, const ProjectionModules& modules, const std::string& norm, const ModelConfig& config,
                       const DecoderNames& names, SlicePlace place)
    : unit_(unit),
      product_(unit, modules, config, names, ProductCut::inputs, place),
      norm_(norm_in(unit, norm, config)),
      dropout_(config.trained_dropout().residual, unit.name() + "." + modules.names.front() + " to the residual"),
      scale_(config.residual_scale) {}

TokenPart HalfOutput::add(const WidthPart& y, const TokenPart& x, const ForwardContext& context) const {
  return add_product(LinearInput::plain(y.x), x, context);
}

TokenPart HalfOutput::add_activated(const WidthPart& y, const ActivationKind& how, const TokenPart& x,
                                    const ForwardContext& context) const {
  return add_product(LinearInput::activated(y.x, how), x, context);
}

TokenPart HalfOutput::add_product(LinearInput input, const TokenPart& x, const ForwardContext& context) const {
  input.unread = context.only_gradient && !norm_.exists();  // a norm's gradient depends on the product
  if (!norm_.exists() && scale_ == 1 && !dropout_.drops(context)) return {product_.apply(input, x.x, context)};
  TokenPart added{product_.apply(input, {}, context)};
  if (norm_.exists()) added = norm_.apply(unit_.parameters(), added);
  const at::Tensor kept = dropout_.drop(added.x, context);
  return {scale_ == 1 ? x.x + kept : x.x + kept * scale_};
}

void HalfOutput::list(std::vector<int>& indices) const {
  product_.list(indices);
  norm_.list(indices);
}

}  // namespace zero

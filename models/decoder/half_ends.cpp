#include "models/decoder/half_ends.h"

#include <ATen/ATen.h>

namespace zero {
namespace {

DecoderNorm norm_in(Unit& unit, const std::string& module, const ModelConfig& config) {
  return DecoderNorm(unit.parameters(), module.empty() ? "" : unit.name() + "." + module, config);
}

}  // namespace

HalfInput::HalfInput(Unit& unit, const std::string& norm, const ProjectionModules& modules, const ModelConfig& config,
                     const DecoderNames& names)
    : unit_(unit), norm_(norm_in(unit, norm, config)), product_(unit, modules, config, names) {}

LinearBeside HalfInput::apply(const at::Tensor& x, const ForwardContext& context) const {
  return product_.apply_beside(norm_.input(unit_.parameters(), x), x, context);
}

void HalfInput::list(std::vector<int>& indices) const {
  norm_.list(indices);
  product_.list(indices);
}

HalfOutput::HalfOutput(Unit& unit, const ProjectionModules& modules, const std::string& norm, const ModelConfig& config,
                       const DecoderNames& names)
    : unit_(unit), product_(unit, modules, config, names), norm_(norm_in(unit, norm, config)) {}

at::Tensor HalfOutput::add(const LinearInput& input, const at::Tensor& x, const ForwardContext& context) const {
  if (!norm_.exists()) return product_.apply(input, x, context);
  return x + norm_.apply(unit_.parameters(), product_.apply(input, {}, context));
}

void HalfOutput::list(std::vector<int>& indices) const {
  product_.list(indices);
  norm_.list(indices);
}

}  // namespace zero

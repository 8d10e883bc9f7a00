#pragma once
// HalfInput and HalfOutput: what stands at the beginning and at the end of a decoder block's half.
#include <string>
#include <vector>

#include "models/decoder/decoder_parameters.h"
#include "models/decoder/projection.h"

namespace zero {

/// A norm of the residual stream and the product that reads it.
class HalfInput {
 public:
  /// `norm`: its module's name in the unit; empty: there is none.
  HalfInput(Unit& unit, const std::string& norm, const ProjectionModules& modules, const ModelConfig& config,
            const DecoderNames& names);

  /// The product of x [B, T, hidden], and x for HalfOutput::add().
  LinearBeside apply(const at::Tensor& x, const ForwardContext& context) const;
  /// Appends the indices of its parameters.
  void list(std::vector<int>& indices) const;

 private:
  const Unit& unit_;
  DecoderNorm norm_;
  Projection product_;
};

/// The product that returns to the model's width, and a norm of it.
class HalfOutput {
 public:
  HalfOutput(Unit& unit, const ProjectionModules& modules, const std::string& norm, const ModelConfig& config,
             const DecoderNames& names);

  /// x plus the product, or plus its norm.
  at::Tensor add(const LinearInput& input, const at::Tensor& x, const ForwardContext& context) const;
  /// Appends the indices of its parameters.
  void list(std::vector<int>& indices) const;

 private:
  const Unit& unit_;
  Projection product_;
  DecoderNorm norm_;
};

}  // namespace zero

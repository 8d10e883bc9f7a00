#pragma once
// HalfInput and HalfOutput: what stands at the beginning and at the end of a decoder block's half.
#include <string>
#include <vector>

#include "models/decoder/decoder_parameters.h"
#include "models/decoder/projection.h"
#include "models/parallel/activations.h"

namespace zero {

/// A norm of the residual stream and the product that reads it.
class HalfInput {
 public:
  struct Result {
    WidthPart y;  // the product
    TokenPart x;  // for HalfOutput::add()
  };

  /// `norm`: its module's name in the unit; empty: there is none. `place`: whose slices of the product it holds.
  HalfInput(Unit& unit, const std::string& norm, const ProjectionModules& modules, const ModelConfig& config,
            const DecoderNames& names, SlicePlace place);

  Result apply(const TokenPart& x, const ForwardContext& context) const;
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
             const DecoderNames& names, SlicePlace place);

  /// x plus the product of y, or plus its norm.
  TokenPart add(const WidthPart& y, const TokenPart& x, const ForwardContext& context) const;
  /// The same of the activation of y.
  TokenPart add_activated(const WidthPart& y, const ActivationKind& how, const TokenPart& x,
                          const ForwardContext& context) const;
  /// Appends the indices of its parameters.
  void list(std::vector<int>& indices) const;

 private:
  TokenPart add_product(const LinearInput& input, const TokenPart& x, const ForwardContext& context) const;

  const Unit& unit_;
  Projection product_;
  DecoderNorm norm_;
};

}  // namespace zero

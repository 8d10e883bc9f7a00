#pragma once
// HalfInput and HalfOutput: the beginning and the end of a decoder block's half.
#include <string>
#include <vector>

#include "models/decoder/decoder_parameters.h"
#include "models/decoder/dropout_place.h"
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

  /// `norm` is the norm's module name in the unit; if empty, there is no norm. `place` is the rank whose slices of the
  /// product this object holds.
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

/// The product that maps back to the model's width, a norm of its result, and dropout of what is added.
class HalfOutput {
 public:
  HalfOutput(Unit& unit, const ProjectionModules& modules, const std::string& norm, const ModelConfig& config,
             const DecoderNames& names, SlicePlace place);

  /// Returns x plus the product of y, or plus the norm of that product, times ModelConfig::residual_scale. Training
  /// drops elements of what is added.
  TokenPart add(const WidthPart& y, const TokenPart& x, const ForwardContext& context) const;
  /// Does the same, but applies the activation to y first.
  TokenPart add_activated(const WidthPart& y, const ActivationKind& how, const TokenPart& x,
                          const ForwardContext& context) const;
  /// Appends the indices of its parameters.
  void list(std::vector<int>& indices) const;

 private:
  TokenPart add_product(LinearInput input, const TokenPart& x, const ForwardContext& context) const;

  const Unit& unit_;
  Projection product_;
  DecoderNorm norm_;
  DropoutPlace dropout_;
  double scale_;
};

}  // namespace zero

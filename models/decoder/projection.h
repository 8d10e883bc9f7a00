#pragma once
// Projection: one matrix product of a decoder block. Modules that share an input (q, k, v) form one product.
#include <cstdint>
#include <string>
#include <vector>

#include "models/decoder/decoder_names.h"
#include "models/model_config.h"
#include "models/nn/linear.h"
#include "models/unit.h"

namespace zero {

/// The modules of a product: their names in the unit, the rows of each, and the number of inputs. A single fused module
/// has the rows of all parts.
struct ProjectionModules {
  std::vector<std::string> names;
  std::vector<std::int64_t> rows;
  std::int64_t inputs = 0;
  bool bias = false;
};

/// How the ranks of the tensor axis divide a product (Shoeybi et al. 2019). `outputs`: each rank computes some outputs
/// of every module for all tokens. `inputs`: each rank multiplies some inputs, and the ranks sum their products. Every
/// rank then has the whole bias.
enum class ProductCut : std::uint8_t { outputs, inputs };

class Projection {
 public:
  /// Declares the weight, and the bias if there is one, as parameters of the unit, which must outlive this object.
  /// `place` is the rank whose slice this object holds.
  Projection(Unit& unit, const ProjectionModules& modules, const ModelConfig& config, const DecoderNames& names,
             ProductCut cut, SlicePlace place);

  /// Returns input W^T + bias + the adapters' output (+ residual). With divided outputs, maps this rank's tokens [1,
  /// own, in] to all tokens [B, T, rows / ranks]. With divided inputs, maps all tokens [B, T, in / ranks] to this
  /// rank's tokens [1, own, rows].
  at::Tensor apply(LinearInput input, const at::Tensor& residual, const ForwardContext& context) const;
  /// Does the same without a residual, and also returns x for the end of the half. If the input has an RMSNorm, both
  /// gradients are added in one pass.
  LinearBeside apply_beside(LinearInput input, const at::Tensor& x, const ForwardContext& context) const;
  /// Appends the indices of its parameters, including adapters.
  void list(std::vector<int>& indices) const;

 private:
  const at::Tensor& tensor(int index) const { return unit_.parameters()[std::size_t(index)].tensor; }
  at::Tensor weight() const;
  at::Tensor bias() const;
  void set_flow(LinearInput& input, const ForwardContext& context) const;
  std::vector<LowRank> adapters(const LinearInput& input, const ForwardContext& context) const;
  LowRank low_rank(const Adapter& adapter, const LinearInput& input, const ForwardContext& context) const;

  const Unit& unit_;
  int weight_ = -1, bias_ = -1;
  bool input_first_;
  ProductCut cut_;
  std::int64_t first_input_ = 0;  // the first of this rank's inputs
};

}  // namespace zero

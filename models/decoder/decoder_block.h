#pragma once
// DecoderBlock: attention and an MLP, each with its family's norms around it, added to the residual stream.
#include <memory>

#include "models/decoder/decoder_parameters.h"
#include "models/ops/attention.h"
#include "models/ops/rotary.h"

namespace zero {

class DecoderBlock : public Unit {
 public:
  /// `rotary`: the table for the layer's rope kind, shared by all blocks of that kind.
  DecoderBlock(const ModelConfig& config, const DecoderNames& names, std::int64_t layer,
               std::shared_ptr<Rotary> rotary);

  void drop_tables() override { rotary_->drop(); }
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) override;

 private:
  struct Projection {
    int weight = -1, bias = -1;
  };
  struct Half {  // of the block: norm, product, the part between, product, norm
    DecoderNorm before, after;
    Projection input, output;
  };

  /// Declares modules of `out` rows each, with `in` inputs, as one parameter.
  Projection add_projection(const std::vector<std::string>& modules, const std::vector<std::int64_t>& out,
                            std::int64_t in, bool bias, const ModelConfig& config, const DecoderNames& names);
  int add_head_norm(const std::string& module, std::int64_t heads, const ModelConfig& config);

  const at::Tensor& tensor(int index) const { return parameters_[index].tensor; }
  at::Tensor attend(const at::Tensor& x, const ForwardContext& context) const;
  at::Tensor attention_heads(at::Tensor qkv, const ForwardContext& context) const;
  std::vector<at::Tensor> attention_leaves() const;
  /// The end of a half: the product, added to x or to its norm.
  at::Tensor add_output(const LinearInput& input, const Half& half, const at::Tensor& x,
                        const ForwardContext& context) const;
  at::Tensor project(const LinearInput& input, const Projection& projection, const at::Tensor& residual,
                     const ForwardContext& context) const;
  /// The beginning of a half: its product of x, and x for the end of it.
  LinearBeside project_beside(const Half& half, const at::Tensor& x, const ForwardContext& context) const;
  at::Tensor weight(const Projection& projection) const;
  at::Tensor bias(const Projection& projection) const;
  std::vector<LowRank> adapters_of(const Projection& projection, const ForwardContext& context,
                                   std::int64_t sequence) const;
  LowRank low_rank(const Adapter& adapter, const ForwardContext& context, std::int64_t sequence) const;

  std::int64_t layer_, turned_;
  AttentionShape shape_;
  ActivationKind activation_;
  NormKind norm_;
  double eps_;
  bool input_first_;
  std::shared_ptr<Rotary> rotary_;
  Half attention_, mlp_;
  int q_norm_ = -1, k_norm_ = -1;
};

}  // namespace zero

#pragma once
// AttentionHalf: a norm, the products for queries, keys and values, attention, the output product, and a norm.
#include <memory>

#include "models/decoder/decoder_half.h"
#include "models/decoder/dropout_place.h"
#include "models/decoder/half_ends.h"
#include "models/ops/attention.h"
#include "models/ops/rotary.h"

namespace zero {

class AttentionHalf final : public DecoderHalf {
 public:
  /// Declares this object's parameters in the unit, which must outlive the object. `rotary` is the table for the
  /// layer's rope kind, shared by all blocks of that kind. `place` is the rank whose heads this object holds.
  AttentionHalf(Unit& unit, const ModelConfig& config, const DecoderNames& names, std::int64_t layer,
                std::shared_ptr<Rotary> rotary, SlicePlace place);

  TokenPart forward(const TokenPart& x, const ForwardContext& context) const override;
  std::vector<int> parameters() const override;
  bool is_attention() const override { return true; }
  void drop_tables() override { rotary_->drop(); }

 private:
  static int add_head_norm(Unit& unit, const std::string& module, std::int64_t heads, const ModelConfig& config,
                           SlicePlace place);
  const at::Tensor& tensor(int index) const { return unit_.parameters()[std::size_t(index)].tensor; }
  WidthPart attend(const WidthPart& qkv, const ForwardContext& context) const;
  /// Attention on a context axis. Its ranks first exchange tokens for heads.
  WidthPart attend_swapped(const WidthPart& qkv, const TokenSplit& split, const ForwardContext& context) const;

  const Unit& unit_;
  std::int64_t layer_, turned_;
  AttentionShape shape_;     // of this rank's heads
  std::int64_t first_head_;  // the first of them
  DropoutPlace dropout_;     // of probabilities
  NormKind norm_;
  bool norms_all_heads_;
  double eps_;
  std::shared_ptr<Rotary> rotary_;
  // These members are declared in the order of the unit's parameters.
  HalfInput input_;
  int q_norm_, k_norm_;  // -1: none
  HalfOutput output_;
};

}  // namespace zero

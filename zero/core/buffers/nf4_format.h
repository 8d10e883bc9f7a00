#pragma once
// Nf4Format: frozen weights in the 4-bit type NF4 (QLoRA, Dettmers et al. 2023).
#include "zero/core/buffers/nf4_codec.h"
#include "zero/core/buffers/wire_format.h"

namespace zero {

class Nf4Format final : public WireFormat {
 public:
  /// `shards`: the layout's number, or 1 if every rank holds the full vector.
  Nf4Format(const FlatLayout& layout, int shards, Nf4CodecOptions options)
      : codec_(layout, shards, options), numel_(layout.numel()) {}

  at::ScalarType type() const override { return at::kByte; }
  std::int64_t rest_numel() const override { return codec_.shard_bytes(); }
  std::int64_t all_numel() const override { return codec_.all_bytes(); }
  bool is_plain() const override { return false; }
  void decode(const at::Tensor& all, const at::Tensor& full) const override { codec_.decode(all, full); }
  void encode(const WeightReader& reader, const at::Tensor& rest) const override;
  std::int64_t encode_bytes() const override;

 private:
  Nf4Codec codec_;
  std::int64_t numel_;
};

}  // namespace zero

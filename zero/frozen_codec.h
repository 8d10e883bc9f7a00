#pragma once
// FrozenCodec: how the frozen weights of a quantised group lie in memory and on the wire (QLoRA). The flat vector is cut into
// the layout's shards; of each, matrices are held as NF4 blocks and what is not a matrix in the compute type. Shards are equally
// long in bytes, so that they are gathered like others, at about a quarter of the size.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "zero/flat_layout.h"

namespace zero {

class FrozenCodec {
 public:
  /// The layout's alignment must be a multiple of nf4_block. `shards`: those of the layout, or 1 where ranks hold it whole.
  FrozenCodec(const FlatLayout& layout, int shards, at::ScalarType type);

  std::int64_t shard_bytes() const { return shard_bytes_; }
  std::int64_t all_bytes() const { return shard_bytes_ * std::int64_t(shards_.size()); }

  /// Elements [begin, begin + values.numel()) of a shard, fp32, both multiples of nf4_block, into the shard's bytes.
  void encode(int shard, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes) const;

  /// The bytes of all shards to the whole flat vector, in its type. Host memory.
  void decode(const at::Tensor& bytes, const at::Tensor& full) const;

 private:
  struct Run {                      // blocks of one kind
    std::int64_t begin = 0;         // element in the flat vector
    std::int64_t blocks = 0;
    bool quantized = false;
    std::int64_t place = 0;         // first byte in the shard: codes, then largest values; or elements
  };
  std::int64_t bytes_of(const Run& run) const;
  void encode_run(const Run& run, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes) const;

  at::ScalarType type_;
  std::int64_t shard_numel_ = 0;
  std::int64_t shard_bytes_ = 0;
  std::vector<std::vector<Run>> shards_;
};

}  // namespace zero

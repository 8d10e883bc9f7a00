#pragma once
// Nf4Codec: the layout of a quantized group's frozen weights in memory and on the wire (QLoRA). The flat vector is
// divided into the layout's shards. A shard holds matrices as NF4 blocks and all other weights in the compute type. All
// shards have the same length in bytes, so they are gathered like plain shards, at about a quarter of the size.
//
// Quantized scales (double quantisation) follow bitsandbytes. Groups of 256 blocks count from the start of each tensor,
// and the mean is taken over the whole tensor. The values therefore do not depend on the number of ranks. Every shard
// with a part of a group holds the group's header next to the codes of the scales.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "offload/quantized/device_nf4.h"
#include "zero/core/buffers/block_kinds.h"

namespace zero {

struct Nf4CodecOptions {
  at::ScalarType type = at::kBFloat16;  // of values outside matrices
  bool quantize_scales = false;
  at::Device device = at::kCPU;  // where values are decoded
};

class Nf4Codec {
 public:
  /// The layout's alignment must be a multiple of nf4_block. `shards`: the layout's number, or 1 if every rank holds
  /// the full vector.
  Nf4Codec(const FlatLayout& layout, int shards, Nf4CodecOptions format);

  std::int64_t shard_bytes() const { return shard_bytes_; }
  std::int64_t all_bytes() const { return shard_bytes_ * std::int64_t(shards_.size()); }
  bool quantizes_scales() const { return format_.quantize_scales; }

  /// Encodes elements [begin, begin + values.numel()) of a shard into the shard's bytes. `values` is fp32; begin and
  /// count are multiples of nf4_block. With quantized scales the blocks' largest values are written to `largest`
  /// ([blocks of a shard], fp32), and encode_all_scales() must follow. All tensors are on one device: the host or the
  /// codec's.
  void encode(int shard, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes,
              const at::Tensor& largest = {}) const;
  /// `largest`: the largest values of all shards' blocks, in order, in host memory. `bytes`: the shard's bytes, on any
  /// device.
  void encode_all_scales(int shard, const at::Tensor& largest, const at::Tensor& bytes) const;

  /// Decodes the bytes of all shards into the full flat vector, in the vector's type. Both are on the codec's device.
  /// On a GPU, decoding runs in the current stream.
  void decode(const at::Tensor& bytes, const at::Tensor& full) const;

 private:
  struct ScaleGroup {  // the part of a group of scales that lies in a run, in blocks of the flat vector
    std::int64_t begin = 0, end = 0;
    std::int64_t whole_begin = 0, whole_end = 0;
    std::size_t tensor = 0;  // index into scaled_
  };
  struct Run {               // blocks of one kind
    std::int64_t begin = 0;  // element in the flat vector
    std::int64_t blocks = 0;
    bool quantized = false;
    // First byte in the shard. A plain run stores its elements from here. A quantized run stores codes, then either the
    // blocks' largest values, or headers and codes of the scales.
    std::int64_t place = 0;
    std::vector<ScaleGroup> groups;  // of quantized scales
  };
  std::int64_t bytes_of(const Run& run) const;
  void find_scaled_tensors(const FlatLayout& layout);
  void add_groups(Run& run) const;
  void encode_run(const Run& run, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes,
                  float* largest) const;
  void encode_scales_of(const Run& run, const float* largest, const std::vector<float>& means,
                        std::uint8_t* after_codes) const;
  void decode_quantized(const Run& run, std::uint8_t* start, const at::Tensor& out) const;
  void add_runs(const Run& run, std::int64_t start, std::vector<cuda::Nf4Run>& runs) const;

  Nf4CodecOptions format_;
  std::unique_ptr<DeviceNf4> device_;  // null: the host decodes
  at::Tensor table_;                   // on the device: all runs of all shards
  std::int64_t shard_numel_ = 0;
  std::int64_t shard_bytes_ = 0;
  BlockKinds kinds_;
  std::vector<BlockRange> scaled_;  // blocks of each tensor; their scales share a mean
  std::vector<std::vector<Run>> shards_;
};

}  // namespace zero

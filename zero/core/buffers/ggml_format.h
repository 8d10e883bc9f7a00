#pragma once
// GgmlFormat: frozen weights in ggml types (Q8_0, Q4_0, F16, ...), for 8-bit base models and for base models from a
// GGUF file. The flat vector is divided into the layout's shards. A shard holds tensors with a ggml type in runs of one
// type each, and all other weights in the compute type. All shards have the same length in bytes. Blocks are inside
// rows of tensors, so their contents do not depend on the ranks.
#include <memory>
#include <optional>
#include <vector>

#include "offload/quantized/device_ggml.h"
#include "zero/core/buffers/block_kinds.h"
#include "zero/core/buffers/wire_format.h"

namespace zero {

/// Returns the ggml type in which a tensor is held; none: the compute type.
using GgmlTypeOf = std::function<std::optional<GgmlType>(const TensorSpec&)>;

/// Returns true if the rows of a matrix, or of a slice of a matrix, are whole blocks of the type.
bool has_whole_blocks(const TensorSpec& tensor, GgmlType type);

/// Returns the elements of the largest block among the tensors' types, at least q8_block.
std::int64_t largest_block(const std::vector<std::vector<TensorSpec>>& tensors, const GgmlTypeOf& type_of);

class GgmlFormat final : public WireFormat {
 public:
  /// The layout's alignment must be a multiple of largest_block(). `shards`: the layout's number, or 1 if every rank
  /// holds the full vector. `type_of` must return only types that satisfy has_whole_blocks(). `device`: where values
  /// are decoded.
  GgmlFormat(const FlatLayout& layout, int shards, const GgmlTypeOf& type_of, at::ScalarType compute,
             at::Device device = at::kCPU);

  at::ScalarType type() const override { return at::kByte; }
  std::int64_t rest_numel() const override { return shard_bytes_; }
  std::int64_t all_numel() const override { return shard_bytes_ * std::int64_t(shards_.size()); }
  bool is_plain() const override { return false; }
  void decode(const at::Tensor& all, const at::Tensor& full) const override;
  void encode(const WeightReader& reader, const at::Tensor& rest) const override;
  std::int64_t encode_bytes() const override;

 private:
  struct Run {               // elements of one type
    std::int64_t begin = 0;  // in the flat vector
    std::int64_t numel = 0;
    std::optional<GgmlType> type;
    std::int64_t place = 0;  // first byte in the shard
  };
  std::int64_t bytes_of(const Run& run, std::int64_t numel) const;

  at::ScalarType compute_;
  std::int64_t block_ = q8_block;  // elements of the largest block
  std::int64_t shard_numel_ = 0, shard_bytes_ = 0;
  std::vector<std::vector<Run>> shards_;
  std::unique_ptr<DeviceGgml> device_;  // null: the host decodes
  at::Tensor table_;                    // on the device: all runs of all shards
};

}  // namespace zero

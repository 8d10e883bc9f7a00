#pragma once
// FrozenFormat: how frozen blocks are written, at rest and on the wire, at every stage.
#include <memory>

#include "zero/core/buffers/ggml_format.h"

namespace zero {

/// Matrices of frozen blocks in NF4, or in types of ggml; by default in the compute type, as everything else.
struct FrozenFormat {
  bool nf4 = false, quantized_scales = false;  // the latter with the former: the scales in 8 bits
  GgmlTypeOf ggml_type = {};                   // else; empty: of no tensor

  static FrozenFormat in_nf4(bool quantized_scales) { return {true, quantized_scales}; }
  /// Q8_0: blocks of 32 signed bytes with a scale.
  static FrozenFormat in_8_bits();

  /// The type of ggml of a tensor whose rows are whole blocks of it, unless that is the compute type. InputError for a
  /// slice that ends inside of a block.
  std::optional<GgmlType> type_of(const TensorSpec& tensor, at::ScalarType compute) const;
  /// True if any of a group's tensors is written so.
  bool changes(const std::vector<std::vector<TensorSpec>>& tensors, at::ScalarType compute) const;
  /// InputError for slices whose numbers would not be those of their full tensors.
  void check_cuts(const std::vector<std::vector<TensorSpec>>& tensors) const;
  /// The flat vector is aligned to it.
  std::int64_t alignment() const;
  std::shared_ptr<const WireFormat> make(const FlatLayout& layout, int shards, at::ScalarType compute,
                                         at::Device device) const;
};

}  // namespace zero

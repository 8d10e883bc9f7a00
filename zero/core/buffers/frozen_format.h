#pragma once
// FrozenFormat: the format of frozen blocks, at rest and on the wire, at every stage.
#include <memory>

#include "zero/core/buffers/ggml_format.h"

namespace zero {

/// Matrices of frozen blocks are held in NF4 or in ggml types. By default they are in the compute type, like all other
/// weights.
struct FrozenFormat {
  bool nf4 = false, quantized_scales = false;  // quantized_scales: 8-bit scales; needs nf4
  GgmlTypeOf ggml_type = {};                   // without nf4: each tensor's ggml type; empty: no ggml types

  static FrozenFormat in_nf4(bool quantized_scales) { return {true, quantized_scales}; }
  /// Q8_0: blocks of 32 signed bytes with one scale.
  static FrozenFormat in_8_bits();

  /// Returns a tensor's ggml type if the tensor's rows consist of whole blocks of that type. Returns none if the tensor
  /// stays in the compute type. Throws InputError for a slice that ends inside a block.
  std::optional<GgmlType> type_of(const TensorSpec& tensor, at::ScalarType compute) const;
  /// Returns true if any tensor of a group is in NF4 or in a ggml type.
  bool changes(const std::vector<std::vector<TensorSpec>>& tensors, at::ScalarType compute) const;
  /// Throws InputError for slices whose quantized values would differ from those of their full tensors.
  void check_cuts(const std::vector<std::vector<TensorSpec>>& tensors) const;
  /// The alignment of the flat vector of these tensors, in elements.
  std::int64_t alignment(const std::vector<std::vector<TensorSpec>>& tensors, at::ScalarType compute) const;
  std::shared_ptr<const WireFormat> make(const FlatLayout& layout, int shards, at::ScalarType compute,
                                         at::Device device) const;
};

}  // namespace zero

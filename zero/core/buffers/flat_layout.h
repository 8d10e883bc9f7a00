#pragma once
// FlatLayout: the place of each tensor of a group in one flat vector, and the part of the vector that each rank owns.
// It holds integers only. The vector is divided into equal shards. The overlap of two layouts is all that re-sharding a
// checkpoint needs.
#include <cstdint>
#include <vector>

#include "models/tensor_spec.h"

namespace zero {

/// A tensor inside the flat vector.
struct FlatTensor {
  TensorSpec spec;
  std::int64_t offset = 0;  // of its first element
  int parameter = 0;        // index of the leaf that contains it
};

/// The part of one tensor that lies in one range of a flat vector.
struct FlatSlice {
  int tensor = 0;                 // index into tensors()
  std::int64_t tensor_begin = 0;  // first element inside the tensor
  std::int64_t range_begin = 0;   // the same element inside the range
  std::int64_t count = 0;
};

/// Elements [begin, begin + numel) of a flat vector.
struct FlatRange {
  std::int64_t begin = 0, numel = 0;
};

class FlatLayout {
 public:
  /// Lays out the parameters in order. The parts of one parameter follow each other without padding. Every parameter
  /// starts at a multiple of `alignment` elements. The vector is padded so that the length of each of the `shards`
  /// shards is a multiple of `alignment` too.
  FlatLayout(const std::vector<std::vector<TensorSpec>>& parameters, int shards, std::int64_t alignment = 32);

  const std::vector<FlatTensor>& tensors() const { return tensors_; }
  std::int64_t parameter_offset(int parameter) const { return parameter_offsets_.at(parameter); }

  int shards() const { return shards_; }
  std::int64_t numel() const { return numel_; }      // with padding
  std::int64_t used_numel() const { return used_; }  // without padding
  std::int64_t shard_numel() const { return numel_ / shards_; }
  std::int64_t shard_begin(int shard) const { return shard * shard_numel(); }

  /// Returns the layout of the same group on another rank of the tensor axis.
  FlatLayout of_rank(int rank) const;

  /// Returns the slices of tensors inside [begin, begin + count), in order of offset. Slices contain no padding.
  std::vector<FlatSlice> slices(std::int64_t begin, std::int64_t count) const;

 private:
  std::vector<FlatTensor> tensors_;
  std::vector<std::int64_t> parameter_offsets_;
  int shards_;
  std::int64_t alignment_;
  std::int64_t numel_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace zero

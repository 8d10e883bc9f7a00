#pragma once
// TensorSpec: one tensor as files name it (checkpoints, safetensors, metrics), or a slice of one. Does not include
// LibTorch.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zero {

/// A rank's place along the tensor axis of a mesh.
struct SlicePlace {
  int ranks = 1, rank = 0;

  bool operator==(const SlicePlace&) const = default;
};

/// How the ranks of the tensor axis split a tensor along one dimension. The full tensor is a sequence of pieces:
/// queries, keys and values of a fused matrix, or a single piece. Rank r of R holds elements [size r / R, size (r + 1)
/// / R) of each piece, concatenated. Sizes may differ by one.
struct TensorCut {
  int dim = 0;
  std::vector<std::int64_t> pieces;  // sizes along `dim` in the full tensor
  SlicePlace place = {};

  /// Elements [begin, begin + count) of the full tensor along `dim`.
  struct Window {
    std::int64_t begin = 0, count = 0;
  };
  /// The windows of one rank, one per piece.
  std::vector<Window> windows(int rank) const;
  /// The size along `dim` of the full tensor, and of one rank's slice.
  std::int64_t full() const;
  std::int64_t held(int rank) const;

  bool operator==(const TensorCut&) const = default;
};

struct TensorSpec {
  std::string name;                 // the full tensor's Hugging Face name
  std::vector<std::int64_t> shape;  // of the slice, if this is a slice
  std::optional<TensorCut> cut = {};

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
  /// The full tensor of a slice. A full tensor returns itself.
  TensorSpec full() const;
  /// The slice that another rank of the tensor axis holds. A full tensor returns itself.
  TensorSpec of_rank(int rank) const;
};

/// The slice that the rank at `place` holds of a full tensor with these pieces along `dim`. On an axis of one rank,
/// returns the full tensor.
TensorSpec slice_of(TensorSpec full, int dim, std::vector<std::int64_t> pieces, SlicePlace place);

/// True if the slices of all ranks consist of whole blocks of `block` elements of the flattened tensor. Always true for
/// a full tensor.
bool is_cut_between(const TensorSpec& tensor, std::int64_t block);

/// "[32, 64]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Visits elements [begin, begin + count) of a flattened slice as runs that are also contiguous in the flattened full
/// tensor, ascending. visit() receives the run's first element in the full tensor, its offset from `begin` in the
/// slice, and its length.
void for_each_run(const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                  const std::function<void(std::int64_t full_begin, std::int64_t done, std::int64_t count)>& visit);

/// Does the reverse: visits elements [begin, begin + count) of a flattened full tensor as ascending runs that one
/// rank's slice holds contiguously. visit() receives the rank, the run's first element in its slice, the offset from
/// `begin`, and the length. `slice` may be any rank's; a full tensor counts as rank 0's.
void for_each_slice_run(
    const TensorSpec& slice, std::int64_t begin, std::int64_t count,
    const std::function<void(int rank, std::int64_t slice_begin, std::int64_t done, std::int64_t count)>& visit);

}  // namespace zero

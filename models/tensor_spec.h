#pragma once
// TensorSpec: one tensor as files name it (checkpoints, safetensors, metrics), or a slice of one. No LibTorch.
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

/// How the ranks of the tensor axis cut a tensor along one dimension. The full tensor is made of pieces, one after
/// another: queries, keys and values of a fused matrix, or a single one. Rank r of R holds elements
/// [size r / R, size (r + 1) / R) of each piece, one after another. Sizes may differ by one.
struct TensorCut {
  int dim = 0;
  std::vector<std::int64_t> pieces;  // their sizes along `dim` in the full tensor
  SlicePlace place = {};

  /// Elements [begin, begin + count) of the full tensor along `dim`.
  struct Window {
    std::int64_t begin = 0, count = 0;
  };
  /// The windows of one rank, a window for each piece.
  std::vector<Window> windows(int rank) const;
  /// Sizes along `dim`: of the full tensor, and of one rank's slice.
  std::int64_t full() const;
  std::int64_t held(int rank) const;

  bool operator==(const TensorCut&) const = default;
};

struct TensorSpec {
  std::string name;                 // Hugging Face name, of the full tensor
  std::vector<std::int64_t> shape;  // of the slice, if it is one
  std::optional<TensorCut> cut = {};

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
  /// The full tensor of a slice. Itself if it is none.
  TensorSpec full() const;
  /// The slice that another rank of the tensor axis holds. Itself if it is no slice.
  TensorSpec of_rank(int rank) const;
};

/// The slice that a rank at this place holds of a full tensor, which has the pieces along `dim`. On an axis of one rank
/// the full tensor itself, without a cut.
TensorSpec slice_of(TensorSpec full, int dim, std::vector<std::int64_t> pieces, SlicePlace place);

/// True if a slice of a flattened tensor consists of whole blocks of that many elements. True for a full tensor.
bool is_cut_between(const TensorSpec& tensor, std::int64_t block);

/// "[32, 64]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Visits elements [begin, begin + count) of a flattened slice as runs that are also contiguous in the
/// flattened full tensor, ascending. visit() gets the run's first element in the full tensor, the same counted
/// from `begin`, and its length.
void for_each_run(const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                  const std::function<void(std::int64_t full_begin, std::int64_t done, std::int64_t count)>& visit);

/// The reverse: visits elements [begin, begin + count) of a flattened full tensor as runs that one rank's slice holds
/// contiguously, ascending: visit(rank, first element in its slice, the same counted from `begin`, elements). `slice`:
/// that of any rank; a full tensor counts as that of rank 0.
void for_each_slice_run(
    const TensorSpec& slice, std::int64_t begin, std::int64_t count,
    const std::function<void(int rank, std::int64_t slice_begin, std::int64_t done, std::int64_t count)>& visit);

}  // namespace zero

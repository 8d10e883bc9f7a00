#pragma once
// TensorSpec: one tensor as files name it (checkpoints, safetensors, metrics), or a slice of one. No LibTorch.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zero {

/// A slice's part of its full tensor: [begin, begin + shape[dim]) of `full` along one dimension. Ranks along the tensor
/// axis of a mesh hold slices of equal size, in their order.
struct TensorCut {
  int dim = 0;
  std::int64_t begin = 0, full = 0;

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
};

/// "[32, 64]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Visits elements [begin, begin + count) of a flattened slice as runs that are also contiguous in the
/// flattened full tensor, ascending. visit() gets the run's first element in the full tensor, the same counted
/// from `begin`, and its length.
void for_each_run(const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                  const std::function<void(std::int64_t full_begin, std::int64_t done, std::int64_t count)>& visit);

}  // namespace zero

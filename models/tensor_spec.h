#pragma once
// TensorSpec: one tensor as the outside world knows it (checkpoints, safetensors, metrics), or a slice of one. No
// LibTorch.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zero {

/// Which part of its full tensor a slice is: [begin, begin + shape[dim]) of `full` along one dimension. Ranks along the
/// tensor axis of a mesh hold slices of equal size, in their order.
struct TensorCut {
  int dim = 0;
  std::int64_t begin = 0, full = 0;

  bool operator==(const TensorCut&) const = default;
};

struct TensorSpec {
  std::string name;                 // Hugging Face name, of the full tensor
  std::vector<std::int64_t> shape;  // of the slice, where it is one
  std::optional<TensorCut> cut = {};

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
  /// The tensor that this is a slice of; itself where it is none.
  TensorSpec full() const;
};

/// "[32, 64]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Of elements [begin, begin + count) of a flattened slice, the runs that are neighbours in the flattened full tensor
/// too, ascending: visit(first element in the full tensor, the same counted from `begin`, elements).
void for_each_run(const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                  const std::function<void(std::int64_t full_begin, std::int64_t done, std::int64_t count)>& visit);

}  // namespace zero

#pragma once
// TensorSketch: a summary of a tensor, to compare it between runs: a hash of its bits, and sums that estimate the norm
// of a difference. Sketches of parts can be added, so ranks may split the tensor in any way.
#include <array>
#include <cstdint>
#include <span>

namespace zero {

/// Each element is added to one bucket with one sign, both determined by its index (a count sketch: Charikar, Chen,
/// Farach-Colton, ICALP 2002). The expected value of the squared distance of two sketches is the squared norm of the
/// tensors' difference. Its relative standard deviation is at most sqrt(2 / buckets).
struct TensorSketch {
  static constexpr std::size_t buckets_count = 128;

  std::uint64_t hash = 0;  // equal if all values are (0.0 and -0.0 differ); else equal with probability 2^-64
  std::int64_t numel = 0;
  double sum = 0, squares = 0;
  std::array<double, buckets_count> buckets{};

  /// Adds elements [begin, begin + values.size()) of the tensor.
  void add(std::int64_t begin, std::span<const double> values);
  /// Adds other elements of the same tensor.
  void add(const TensorSketch& other);

  double norm() const;
};

/// Returns the estimated norm of the difference; 0 for equal values.
double distance(const TensorSketch& a, const TensorSketch& b);

/// Returns the same without the `count` buckets that differ most, rescaled. A difference in all elements hardly
/// shrinks, while a difference in at most `count` elements vanishes. Requires `count` < buckets_count.
double distance_without(const TensorSketch& a, const TensorSketch& b, std::size_t count);

}  // namespace zero

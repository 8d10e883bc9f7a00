#pragma once
// TensorSketch: what is kept of a tensor to compare it with the same tensor of another run: a hash of its bits, and sums
// from which the norm of a difference follows. All are sums over elements, so that ranks add theirs, however it is cut.
#include <array>
#include <cstdint>
#include <span>

namespace zero {

/// Each element goes into one bucket with one sign, both by its number in the tensor (a count sketch: Charikar, Chen,
/// Farach-Colton, ICALP 2002). The squared distance of two sketches has the squared norm of the tensors' difference as
/// its mean, and a standard deviation of at most a share sqrt(2 / buckets) of it.
struct TensorSketch {
  static constexpr std::size_t buckets_count = 128;

  std::uint64_t hash = 0;  // equal where all values are, 0.0 and -0.0 apart; others share it with probability 2^-64
  std::int64_t numel = 0;
  double sum = 0, squares = 0;
  std::array<double, buckets_count> buckets{};

  /// Elements [begin, begin + values.size()) of the tensor.
  void add(std::int64_t begin, std::span<const double> values);
  /// Other elements of the same tensor.
  void add(const TensorSketch& other);

  double norm() const;
};

/// An estimate of the norm of the difference, 0 for equal values.
double distance(const TensorSketch& a, const TensorSketch& b);

/// The same without the `count` buckets that differ most, scaled to all of them: of a difference in all elements hardly
/// less, of one in no more than `count` elements nothing. `count` < buckets_count.
double distance_without(const TensorSketch& a, const TensorSketch& b, std::size_t count);

}  // namespace zero

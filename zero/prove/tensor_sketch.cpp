#include "zero/prove/tensor_sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"

namespace zero {

void TensorSketch::add(std::int64_t begin, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t place = mix_bits((std::uint64_t(begin) + i + 1) * golden_gamma);
    // All NaNs count as one value, whatever operation made them.
    const double value = std::isnan(values[i]) ? std::numeric_limits<double>::quiet_NaN() : values[i];
    hash += mix_bits(place ^ mix_bits(std::bit_cast<std::uint64_t>(value) + golden_gamma));
    sum += values[i];
    squares += values[i] * values[i];
    double& bucket = buckets[place % buckets_count];
    bucket += place >> 63 ? -values[i] : values[i];
  }
  numel += std::int64_t(values.size());
}

void TensorSketch::add(const TensorSketch& other) {
  hash += other.hash;
  numel += other.numel;
  sum += other.sum;
  squares += other.squares;
  for (std::size_t b = 0; b < buckets_count; ++b) buckets[b] += other.buckets[b];
}

double TensorSketch::norm() const { return std::sqrt(squares); }

double distance(const TensorSketch& a, const TensorSketch& b) { return distance_without(a, b, 0); }

double distance_without(const TensorSketch& a, const TensorSketch& b, std::size_t count) {
  if (a.hash == b.hash && a.numel == b.numel) return 0;
  std::array<double, TensorSketch::buckets_count> squares;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const double off = a.buckets[i] - b.buckets[i];
    if (std::isnan(off)) return off;
    squares[i] = off * off;
  }
  std::sort(squares.begin(), squares.end());
  const auto kept = squares.size() - count;
  const double sum = std::accumulate(squares.begin(), squares.begin() + std::ptrdiff_t(kept), 0.0);
  return std::sqrt(sum * double(squares.size()) / double(kept));
}

}  // namespace zero

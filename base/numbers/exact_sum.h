#pragma once
// ExactSum: a sum of fp64 numbers without rounding. What is added in which order, and by whom, changes nothing.
//
// After U. Kulisch: a fixed-point number wide enough for every fp64, as digits of 32 bits that hold their carries until
// somebody asks.
#include <array>
#include <cstdint>

namespace zero {

class ExactSum {
 public:
  /// From 2^-1074 on, 32 bits each, and room for carries; then the numbers that were no numbers.
  static constexpr int digits = 67;
  /// What a sum is made of: integers that several sums may be added by, each for itself.
  using Parts = std::array<std::int64_t, digits + 3>;

  void add(double x);
  void add(const ExactSum& other);
  /// At most 2^30 sums' parts may be added before they are a sum again.
  Parts parts() const;
  static ExactSum of(const Parts& parts);

  /// The sum as fp64, off by one unit in its last place at most, and always the same for the same sum; infinite or not a
  /// number where one that was added is.
  double value() const;

 private:
  void carry();

  std::array<std::int64_t, digits> digits_{};
  std::int64_t added_ = 0;  // since digits were below 2^32
  std::int64_t infinite_ = 0, minus_infinite_ = 0, not_numbers_ = 0;
};

}  // namespace zero

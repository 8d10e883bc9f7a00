#pragma once
// ExactSum: a sum of fp64 numbers without rounding. The order of additions does not matter.
//
// After U. Kulisch: a fixed-point number wide enough for every fp64, as digits of 32 bits that hold their carries until
// the value is read.
#include <array>
#include <cstdint>

namespace zero {

class ExactSum {
 public:
  /// Digits of 32 bits from 2^-1074 on, with room for carries. Counts of infinities and NaNs follow.
  static constexpr int digits = 67;
  /// The parts of a sum as integers. Parts of several sums may be added one by one.
  using Parts = std::array<std::int64_t, digits + 3>;

  void add(double x);
  void add(const ExactSum& other);
  /// At most 2^30 sums' parts may be added before they become a sum again.
  Parts parts() const;
  static ExactSum of(const Parts& parts);

  /// The sum as fp64, off by at most one unit in its last place. It is always the same for the same sum. It is infinite
  /// or NaN if a summand is.
  double value() const;

 private:
  void carry();

  std::array<std::int64_t, digits> digits_{};
  std::int64_t added_ = 0;  // since digits were below 2^32
  std::int64_t infinite_ = 0, minus_infinite_ = 0, not_numbers_ = 0;
};

}  // namespace zero

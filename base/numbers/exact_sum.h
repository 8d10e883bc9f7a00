#pragma once
// ExactSum: a sum of fp64 numbers without rounding, so the order of additions does not matter.
//
// The method is U. Kulisch's: a fixed-point number wide enough for every fp64, stored as 32-bit digits. Each digit
// keeps its carries until the value is read.
#include <array>
#include <cstdint>

namespace zero {

class ExactSum {
 public:
  /// The number of 32-bit digits, which begin at 2^-1074 and leave room for carries.
  static constexpr int digits = 67;
  /// A sum as integers: its digits, then the counts of positive infinities, negative infinities and NaNs. Sums can be
  /// added element by element.
  using Parts = std::array<std::int64_t, digits + 3>;

  void add(double x);
  void add(const ExactSum& other);
  /// At most 2^30 such arrays may be added before of() turns the result into an ExactSum again.
  Parts parts() const;
  static ExactSum of(const Parts& parts);

  /// The sum as fp64, with an error of at most one unit in the last place. Equal sums give equal values. The value is
  /// infinite or NaN if a summand is.
  double value() const;

 private:
  void carry();

  std::array<std::int64_t, digits> digits_{};
  std::int64_t added_ = 0;  // summands since the last carry()
  std::int64_t infinite_ = 0, minus_infinite_ = 0, not_numbers_ = 0;
};

}  // namespace zero

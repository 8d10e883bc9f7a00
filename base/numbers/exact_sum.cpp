#include "base/numbers/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace zero {
namespace {

constexpr int digit_bits = 32, mantissa_bits = 52;
constexpr std::int64_t base = std::int64_t{1} << digit_bits;
constexpr std::int64_t most_added = std::int64_t{1} << 30;  // no digit overflows below it

}  // namespace

void ExactSum::add(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const bool negative = bits >> 63;
  const int exponent = int(bits >> mantissa_bits & 0x7ff);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  if (exponent == 0x7ff) {
    ++(mantissa ? not_numbers_ : negative ? minus_infinite_ : infinite_);
    return;
  }
  if (exponent > 0) mantissa |= std::uint64_t{1} << mantissa_bits;
  const int place = exponent > 0 ? exponent - 1 : 0;  // of the mantissa's lowest bit, counted from 2^-1074
  const int digit = place / digit_bits, shift = place % digit_bits;
  const auto low = std::uint64_t(mantissa << shift), high = shift ? mantissa >> (64 - shift) : 0;
  const std::int64_t sign = negative ? -1 : 1;
  digits_[std::size_t(digit)] += sign * std::int64_t(low & (base - 1));
  digits_[std::size_t(digit) + 1] += sign * std::int64_t(low >> digit_bits);
  digits_[std::size_t(digit) + 2] += sign * std::int64_t(high);
  if (++added_ == most_added) carry();
}

void ExactSum::add(const ExactSum& other) {
  ExactSum lesser = other;
  lesser.carry();
  carry();
  for (std::size_t i = 0; i < digits; ++i) digits_[i] += lesser.digits_[i];
  ++added_;
  infinite_ += other.infinite_;
  minus_infinite_ += other.minus_infinite_;
  not_numbers_ += other.not_numbers_;
}

// Normalizes all digits but the highest, which has the sign, to base 2^32.
void ExactSum::carry() {
  for (std::size_t i = 0; i + 1 < digits; ++i) {
    const std::int64_t over = digits_[i] >> digit_bits;  // rounds towards minus infinity
    digits_[i] -= over * base;
    digits_[i + 1] += over;
  }
  added_ = 0;
}

ExactSum::Parts ExactSum::parts() const {
  ExactSum carried = *this;
  carried.carry();
  Parts parts{};
  for (std::size_t i = 0; i < digits; ++i) parts[i] = carried.digits_[i];
  parts[digits] = infinite_;
  parts[digits + 1] = minus_infinite_;
  parts[digits + 2] = not_numbers_;
  return parts;
}

ExactSum ExactSum::of(const Parts& parts) {
  ExactSum sum;
  for (std::size_t i = 0; i < digits; ++i) sum.digits_[i] = parts[i];
  sum.infinite_ = parts[digits];
  sum.minus_infinite_ = parts[digits + 1];
  sum.not_numbers_ = parts[digits + 2];
  sum.carry();
  return sum;
}

double ExactSum::value() const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (not_numbers_ || (infinite_ && minus_infinite_)) return std::numeric_limits<double>::quiet_NaN();
  if (infinite_ || minus_infinite_) return infinite_ ? infinity : -infinity;
  ExactSum magnitude = *this;
  magnitude.carry();
  const bool negative = magnitude.digits_[digits - 1] < 0;
  if (negative) {
    for (std::int64_t& digit : magnitude.digits_) digit = -digit;
    magnitude.carry();
  }
  int top = digits - 1;
  while (top > 0 && magnitude.digits_[std::size_t(top)] == 0) --top;
  // Three digits hold at least 65 bits; the lower ones do not matter.
  double value = 0;
  for (int i = top; i >= 0 && i > top - 3; --i)
    value += std::ldexp(double(magnitude.digits_[std::size_t(i)]), i * digit_bits - 1074);
  return negative ? -value : value;
}

}  // namespace zero

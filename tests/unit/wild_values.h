#pragma once
// Values that are difficult for a kernel, and a comparison of bits.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <cstring>

namespace zero {

/// Returns values of many magnitudes, with denormals, zeros, infinities and NaN, for which a kernel's rounding is
/// delicate.
inline at::Tensor wild(std::int64_t n, std::uint64_t seed, at::ScalarType type) {
  if (n > 200000) return wild(100003, seed, type).repeat({n / 100003 + 1}).slice(0, 0, n).contiguous();
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  at::Tensor x =
      at::randn({n}, generator, at::kDouble) * at::pow(10.0, at::rand({n}, generator, at::kDouble) * 16 - 12);
  x.index_put_({at::arange(0, n, 97)}, 0.0);
  if (n > 300) {
    x[150] = INFINITY;
    x[211] = NAN;
    x[212] = 1e-41;
    x[213] = 3e-8;
  }
  return x.to(type);
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace zero

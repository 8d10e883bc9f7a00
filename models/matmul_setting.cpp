#include "models/matmul_setting.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

namespace zero {

namespace {

void set(at::Float32Precision precision) {
  at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL, precision);
}

struct Measured {
  double error;     // largest, relative to the largest entry
  double gflops;
};

Measured measure(const at::Tensor& a, const at::Tensor& b) {
  using Clock = std::chrono::steady_clock;
  const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  at::Tensor y = at::mm(a, b);
  const double error = ((y - exact).abs().max() / exact.abs().max()).item<double>();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const auto begin = Clock::now();
    at::mm_out(y, a, b);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return {error, 2e-9 * static_cast<double>(a.size(0) * a.size(1) * b.size(1)) / best};
}

}  // namespace

std::string choose_fast_matmul() {
  const at::NoGradGuard no_grad;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{1});
  const at::Tensor a = at::randn({256, 768}, generator, at::kFloat), b = at::randn({768, 768}, generator, at::kFloat);
  const Measured usual = measure(a, b);
  set(at::Float32Precision::BF16);
  const Measured other = measure(a, b);
  const bool as_exact = other.error <= std::max(4 * usual.error, 2e-6), faster = other.gflops > 1.05 * usual.gflops;
  if (!as_exact || !faster) set(at::Float32Precision::NONE);
  char line[240];
  std::snprintf(line, sizeof line, "fp32 matrix products: %s (%.0f GFLOP/s, error %.1e; LibTorch's own choice: %.0f GFLOP/s, error %.1e)",
                as_exact && faster ? "oneDNN" : as_exact ? "LibTorch's own choice, oneDNN is no faster" : "LibTorch's own choice, oneDNN is less exact",
                other.gflops, other.error, usual.gflops, usual.error);
  return line;
}

}  // namespace zero

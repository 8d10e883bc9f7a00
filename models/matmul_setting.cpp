#include "models/matmul_setting.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <algorithm>
#include <cstdio>

namespace zero {

namespace {

void set(at::Float32Precision precision) {
  at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL, precision);
}

// The largest error, relative to the largest entry.
double error_of(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  return ((at::mm(a, b) - exact).abs().max() / exact.abs().max()).item<double>();
}

}  // namespace

std::string choose_fast_matmul() {
  const at::NoGradGuard no_grad;
  __builtin_cpu_init();
  if (__builtin_cpu_is("intel")) return "fp32 matrix products: LibTorch's own choice, which is made for this processor";
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{1});
  const at::Tensor a = at::randn({256, 768}, generator, at::kFloat), b = at::randn({768, 768}, generator, at::kFloat);
  set(at::Float32Precision::NONE);
  const double usual = error_of(a, b);
  set(at::Float32Precision::BF16);
  const double other = error_of(a, b);
  const bool as_exact = other <= std::max(4 * usual, 2e-6);
  if (!as_exact) set(at::Float32Precision::NONE);
  char line[200];
  std::snprintf(line, sizeof line, "fp32 matrix products: %s (its error %.1e, LibTorch's own choice %.1e)",
                as_exact ? "oneDNN" : "LibTorch's own choice, since oneDNN is less exact here", other, usual);
  return line;
}

}  // namespace zero

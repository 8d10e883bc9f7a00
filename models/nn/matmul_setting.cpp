#include "models/nn/matmul_setting.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace zero {

namespace {

// oneDNN compiles a product for each shape and keeps 1024 of them, with buffers of their own. ideep, LibTorch's layer
// above it, keeps as many again for each thread. Rows of many lengths fill both: hundreds of MiB of a process. A step
// of one length needs about twenty.
constexpr const char* compiled_products = "64";

void set(at::Float32Precision precision) {
  at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL, precision);
}

bool made_by_intel() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

// The largest error, relative to the largest entry.
double error_of(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  return ((at::mm(a, b) - exact).abs().max() / exact.abs().max()).item<double>();
}

}  // namespace

std::string choose_fast_matmul() {
  const at::NoGradGuard no_grad;
  for (const char* cache : {"ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"})
    setenv(cache, compiled_products, /*overwrite=*/0);
  if (made_by_intel()) return "fp32 matrix products: LibTorch's own library, which is made for this processor";
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{1});
  const at::Tensor a = at::randn({256, 768}, generator, at::kFloat), b = at::randn({768, 768}, generator, at::kFloat);
  set(at::Float32Precision::NONE);
  const double usual = error_of(a, b);
  set(at::Float32Precision::BF16);
  const double other = error_of(a, b);
  const bool as_exact = other <= std::max(4 * usual, 2e-6);
  if (!as_exact) set(at::Float32Precision::NONE);
  char line[200];
  if (as_exact)
    std::snprintf(line, sizeof line,
                  "fp32 matrix products: oneDNN, whose error here (%.0e of the largest entry) is fp32's own", other);
  else
    std::snprintf(
        line, sizeof line,
        "fp32 matrix products: LibTorch's own library, since oneDNN is less exact here (error %.0e, not %.0e)", other,
        usual);
  return line;
}

void choose_deterministic_products() {
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);  // for finding mistakes
}

}  // namespace zero

#include "models/nn/matmul_setting.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "models/ops/kernels/tile_matrix.h"
#include "models/ops/matrix_product.h"

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

// The largest error of a product with the present setting, relative to the largest entry.
double error_here() {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{1});
  const at::Tensor a = at::randn({256, 768}, generator, at::kFloat), b = at::randn({768, 768}, generator, at::kFloat);
  const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  return ((matrix_product(a, b) - exact).abs().max() / exact.abs().max()).item<double>();
}

std::string line_of(const char* format, double error, double usual = 0) {
  char line[200];
  std::snprintf(line, sizeof line, format, error, usual);
  return "fp32 matrix products: " + std::string(line);
}

std::string choose_exact() {
  set(at::Float32Precision::NONE);
  if (made_by_intel()) return "fp32 matrix products: LibTorch's own library, which is made for this processor";
  const double usual = error_here();
  set(at::Float32Precision::BF16);
  const double other = error_here();
  if (other <= std::max(4 * usual, 2e-6))
    return line_of("oneDNN, whose error here (%.0e of the largest entry) is fp32's own", other);
  set(at::Float32Precision::NONE);
  return line_of("LibTorch's own library, since oneDNN is less exact here (error %.0e, not %.0e)", other, usual);
}

}  // namespace

MatmulPrecision matmul_precision_of(const std::string& name) {
  if (name == "highest") return MatmulPrecision::highest;
  if (name == "high") return MatmulPrecision::high;
  ZERO_CHECK(name == "medium", "no precision of products: " + name);
  return MatmulPrecision::medium;
}

std::string choose_matmul(MatmulPrecision precision) {
  const at::NoGradGuard no_grad;
  for (const char* cache : {"ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"})
    setenv(cache, compiled_products, /*overwrite=*/0);
  if (precision == MatmulPrecision::highest) return choose_exact();
  at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL, at::Float32Precision::TF32);
  if (precision == MatmulPrecision::medium) {
    set(at::Float32Precision::BF16);
    return line_of("rounded to bf16 where the processor is faster with it (error %.0e of the largest entry)",
                   error_here());
  }
  if (!kernels::has_tile_products()) return choose_exact() + "; \"high\" is faster only with AMX";
  set(at::Float32Precision::TF32);
  return line_of("sums of two bf16 numbers on AMX tiles (error %.0e of the largest entry)", error_here());
}

void choose_deterministic_products() {
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);  // for finding mistakes
}

}  // namespace zero

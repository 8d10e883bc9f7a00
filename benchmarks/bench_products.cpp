// zero_bench products: rates of a model's matrix products, beside LibTorch's in turns. The forward product x W^T, the
// gradient of its input dY W, and the gradient of the weight dY^T x, which is added to an fp32 sum.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/median.h"
#include "models/nn/matmul_setting.h"
#include "models/ops/matrix_product.h"

namespace zero {
namespace {

struct WeightShape {
  const char* model;
  std::int64_t in, out;
};

constexpr std::array weights{WeightShape{"110M", 768, 768},    WeightShape{"110M", 768, 2304},
                             WeightShape{"110M", 768, 4096},   WeightShape{"110M", 2048, 768},
                             WeightShape{"110M", 768, 32000},  WeightShape{"1.1B", 2048, 2560},
                             WeightShape{"1.1B", 2048, 11264}, WeightShape{"1.1B", 5632, 2048}};

enum class ProductKind { forward, input, weight };
constexpr std::array<const char*, 3> kind_names{"x W^T", "dY W", "dY^T x"};

/// A product out (+)= a b, with random numbers.
struct Task {
  at::Tensor out, a, b;
  bool add;

  Task(ProductKind kind, const WeightShape& shape, std::int64_t tokens, at::ScalarType type)
      : add(kind == ProductKind::weight) {
    const at::Tensor x = at::randn({tokens, shape.in}).to(type), w = at::randn({shape.out, shape.in}).to(type),
                     dy = at::randn({tokens, shape.out}).to(type);
    a = kind == ProductKind::forward ? x : kind == ProductKind::input ? dy : dy.t();
    b = kind == ProductKind::forward ? w.t() : kind == ProductKind::input ? w : x;
    out = at::zeros({a.size(0), b.size(1)}, at::TensorOptions(add ? at::kFloat : type));
  }
  void by_zero() { matrix_product_into(out, a, b, add); }
  /// LibTorch rounds a product of 16-bit factors before it can be added to a wider sum.
  void by_libtorch() {
    if (!add)
      at::mm_out(out, a, b);
    else if (out.scalar_type() == a.scalar_type())
      out.addmm_(a, b);
    else
      out.add_(at::mm(a, b));
  }
  double operations() const { return 2.0 * double(a.size(0)) * double(a.size(1)) * double(b.size(1)); }
};

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Operations a second of both, each in the fastest of the repetitions.
std::array<double, 2> rates(Task& task, int repeats) {
  std::array<double, 2> fastest{1e30, 1e30};
  for (int i = 0; i < repeats; ++i) {
    fastest[0] = std::min(fastest[0], seconds_of([&] { task.by_zero(); }));
    fastest[1] = std::min(fastest[1], seconds_of([&] { task.by_libtorch(); }));
  }
  return {task.operations() / fastest[0], task.operations() / fastest[1]};
}

void print_rate(const WeightShape& shape, std::int64_t tokens, const char* kind, const std::array<double, 2>& rate,
                bool json) {
  if (json)
    std::puts(nlohmann::json{{"model", shape.model},
                             {"tokens", tokens},
                             {"in", shape.in},
                             {"out", shape.out},
                             {"product", kind},
                             {"zero", rate[0]},
                             {"libtorch", rate[1]}}
                  .dump()
                  .c_str());
  else
    std::printf("%-6s %6lld %6lld %6lld  %-7s %10.0f %10.0f %8.2f\n", shape.model, (long long)tokens,
                (long long)shape.in, (long long)shape.out, kind, rate[0] / 1e9, rate[1] / 1e9, rate[0] / rate[1]);
}

}  // namespace

int bench_products(int argc, char** argv) {
  std::vector<std::int64_t> tokens{512, 2048};
  int repeats = 30, threads = 1;
  std::string precision = "bf16", matmul = "highest";
  bool json = false, reproducible = false;
  CLI::App app("Rates of the matrix products of Llama 110M and 1.1B, beside LibTorch's in turns.",
               "zero_bench products");
  app.add_option("--tokens", tokens, "rows of x")->capture_default_str()->check(CLI::Range(1, 1 << 20));
  app.add_option("--repeats", repeats, "of which the fastest counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--threads", threads, "of a product")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--precision", precision, "of the factors")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--matmul", matmul, "precision of fp32 products, in both")
      ->capture_default_str()
      ->check(CLI::IsMember({"highest", "high", "medium"}));
  app.add_flag("--reproducible", reproducible, "as with job.reproducible = \"ranks\": AMX tiles take all in bf16");
  app.add_flag("--json", json, "JSON lines, with operations a second");
  if (const auto exit = parse(app, argc, argv)) return *exit;
  if (matmul != "highest" && precision != "fp32")
    return std::fputs("error: --matmul: is for --precision fp32\n", stderr), 2;
  at::set_num_threads(threads);
  const std::string line = choose_matmul(matmul_precision_of(matmul));
  if (reproducible) choose_deterministic_products();
  if (!json)
    std::printf("%s\n%-6s %6s %6s %6s  %-7s %10s %10s %8s   GFLOP/s, %d threads\n",
                precision == "fp32" ? line.c_str() : "bf16 matrix products", "model", "tokens", "in", "out", "product",
                "zero", "LibTorch", "ratio", threads);
  std::array<std::vector<double>, 2> all;
  for (const std::int64_t rows : tokens)
    for (const WeightShape& shape : weights)
      for (const ProductKind kind : {ProductKind::forward, ProductKind::input, ProductKind::weight}) {
        Task task(kind, shape, rows, precision == "fp32" ? at::kFloat : at::kBFloat16);
        const std::array<double, 2> rate = rates(task, repeats);
        for (std::size_t i = 0; i < 2; ++i) all[i].push_back(rate[i]);
        print_rate(shape, rows, kind_names[std::size_t(kind)], rate, json);
        std::fflush(stdout);
      }
  if (!json) std::printf("median %45.0f %10.0f\n", median(all[0]) / 1e9, median(all[1]) / 1e9);
  return 0;
}

}  // namespace zero

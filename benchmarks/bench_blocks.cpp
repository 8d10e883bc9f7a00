// zero_bench blocks: how fast one thread decodes each of ggml's block types, and multiplies them with few rows.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/numbers/decode_blocks.h"
#include "base/numbers/ggml_type.h"
#include "benchmarks/benchmarks.h"
#include "models/ops/kernels/code_panels.h"

namespace zero {
namespace {

constexpr std::uint8_t code = 0x2c;  // as fp16, 0x2c2c is a usual scale

/// Values a second, in the fastest of the repetitions.
double decoding_rate(GgmlType type, Number number, std::int64_t values, int repeats) {
  const std::vector<std::uint8_t> blocks(std::size_t(ggml_bytes(type, values)), code);
  std::vector<float> out(static_cast<std::size_t>(values));
  double fastest = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    decode_blocks(type, blocks.data(), values, number, out.data());
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return double(values) / fastest;
}

/// Weights a second of the product of `rows` rows with a weight [columns, length], in the fastest of the repetitions.
double product_rate(GgmlType type, std::int64_t rows, std::int64_t columns, std::int64_t length, int repeats) {
  using namespace kernels;
  const std::vector<std::uint8_t> panels(std::size_t(panel_bytes(type, columns, length)), code);
  const std::vector<float> x(std::size_t(rows * length), 0.5f);
  std::vector<FixedPoint> integers(x.size() / FixedPoint::values);
  std::vector<float> y(std::size_t(rows * columns));
  double fastest = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    to_fixed_point(type, x.data(), rows, length, integers.data());
    panel_product({type, panels.data(), integers.data(), y.data(), Number::fp32, rows, columns, length, columns, false},
                  0, columns / panel_rows);
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return double(columns * length) / fastest;
}

}  // namespace

int bench_blocks(int argc, char** argv) {
  std::int64_t values = 1 << 16, columns = 256, length = 2048;
  int repeats = 500;
  bool json = false;
  CLI::App app("How fast one thread decodes each of ggml's block types, and multiplies them with few rows.",
               "zero_bench blocks");
  app.add_option("--values", values, "values at a time, a multiple of 256")
      ->check(CLI::Range(256, 1 << 28))
      ->check([](const std::string& given) { return std::stoll(given) % 256 ? "must be a multiple of 256" : ""; });
  app.add_option("--columns", columns, "rows of the weight, a multiple of 16")
      ->check(CLI::Range(16, 1 << 24))
      ->check([](const std::string& given) { return std::stoll(given) % 16 ? "must be a multiple of 16" : ""; });
  app.add_option("--length", length, "values of such a row, a multiple of 256")
      ->check(CLI::Range(256, 1 << 20))
      ->check([](const std::string& given) { return std::stoll(given) % 256 ? "must be a multiple of 256" : ""; });
  app.add_option("--repeats", repeats, "of which the fastest counts")->check(CLI::Range(1, 1000000));
  app.add_flag("--json", json, "JSON lines");
  if (const auto exit = parse(app, argc, argv)) return *exit;
  if (!json)
    std::printf("%-8s %12s %12s %20s %8s %8s %8s   of %lld values, %lld x %lld weights\n", "type", "to fp32, G/s",
                "to bf16, G/s", "times 1 row, G/s", "2 rows", "4 rows", "8 rows", (long long)values, (long long)columns,
                (long long)length);
  for (const GgmlType type : ggml_types()) {
    if (ggml_block(type) == 1) continue;
    const double fp32 = decoding_rate(type, Number::fp32, values, repeats) / 1e9;
    const double bf16 = decoding_rate(type, Number::bf16, values, repeats) / 1e9;
    std::vector<double> products;
    for (const int rows : {1, 2, 4, 8}) products.push_back(product_rate(type, rows, columns, length, repeats) / 1e9);
    if (json)
      std::puts(nlohmann::json{{"type", ggml_name(type)}, {"fp32", fp32}, {"bf16", bf16}, {"products", products}}
                    .dump()
                    .c_str());
    else
      std::printf("%-8s %12.2f %12.2f %20.2f %8.2f %8.2f %8.2f\n", ggml_name(type), fp32, bf16, products[0],
                  products[1], products[2], products[3]);
  }
  return 0;
}

}  // namespace zero

// zero_bench blocks: how fast one thread decodes each of ggml's block types.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/numbers/ggml_blocks.h"
#include "benchmarks/benchmarks.h"

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

}  // namespace

int bench_blocks(int argc, char** argv) {
  std::int64_t values = 1 << 16;
  int repeats = 500;
  bool json = false;
  CLI::App app("How fast one thread decodes each of ggml's block types.", "zero_bench blocks");
  app.add_option("--values", values, "values at a time, a multiple of 256")
      ->check(CLI::Range(256, 1 << 28))
      ->check([](const std::string& given) { return std::stoll(given) % 256 ? "must be a multiple of 256" : ""; });
  app.add_option("--repeats", repeats, "of which the fastest counts")->check(CLI::Range(1, 1000000));
  app.add_flag("--json", json, "JSON lines");
  if (const auto exit = parse(app, argc, argv)) return *exit;
  if (!json)
    std::printf("%-8s %12s %12s   of %lld values\n", "type", "to fp32, G/s", "to bf16, G/s", (long long)values);
  for (const GgmlType type : ggml_types()) {
    if (ggml_block(type) == 1) continue;
    const double fp32 = decoding_rate(type, Number::fp32, values, repeats) / 1e9;
    const double bf16 = decoding_rate(type, Number::bf16, values, repeats) / 1e9;
    if (json)
      std::puts(nlohmann::json{{"type", ggml_name(type)}, {"fp32", fp32}, {"bf16", bf16}}.dump().c_str());
    else
      std::printf("%-8s %12.2f %12.2f\n", ggml_name(type), fp32, bf16);
  }
  return 0;
}

}  // namespace zero

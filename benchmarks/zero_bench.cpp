// zero_bench: measures what the project promises. Every benchmark prints a table for people, or JSON lines with --json.
#include <cstdio>
#include <string_view>

#include "benchmarks/benchmarks.h"
#include "cmake/version.h"
#include "zero/programs/command_line.h"
#include "zero/programs/completion.h"
#include "zero/programs/key_hint.h"

namespace {

struct Benchmark {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* what;
};

const Benchmark benchmarks[] = {
    {"blocks", zero::bench_blocks, "how fast one thread decodes each of the block types of ggml"},
    {"checkpoint", zero::bench_checkpoint, "how long training waits for a checkpoint; start it under mpirun"},
    {"collectives", zero::bench_collectives, "times and bandwidths of the collectives; start it under mpirun"},
    {"memory", zero::bench_memory, "bytes per rank at each stage, predicted and measured"},
    {"model", zero::bench_model, "forward and backward of one rank, and the parts of a block"},
    {"optimizer", zero::bench_optimizer, "AdamW on host memory beside copy bandwidth and LibTorch"},
    {"products", zero::bench_products, "rates of matrix products beside LibTorch's"},
    {"step", zero::bench_step, "a training step at each stage: seconds, tokens per second, bytes"},
    {nullptr, nullptr, nullptr},
};

void print_usage(std::FILE* out) {
  std::fputs("usage: zero_bench BENCHMARK [options]   (BENCHMARK --help lists its options)\n", out);
  for (const Benchmark* b = benchmarks; b->name; ++b) std::fprintf(out, "  %-12s %s\n", b->name, b->what);
}

int print_completion(const std::string& shell) {
  CLI::App app("", "zero_bench");
  for (const Benchmark* b = benchmarks; b->name; ++b) app.add_subcommand(b->name, b->what);
  return std::fputs(zero::completion_of(app, shell).c_str(), stdout) < 0;
}

}  // namespace

std::optional<int> zero::parse(CLI::App& app, int argc, char** argv) {
  return parse_or_refuse(app, argc, argv, version_text("zero_bench"), settable_keys());
}

int main(int argc, char** argv) {
  const std::string_view word = argc < 2 ? "" : argv[1];
  if (word == "--help" || word == "-h") return print_usage(stdout), 0;
  if (word == "--version") return std::puts(zero::version_text("zero_bench").c_str()), 0;
  if (const auto shell = zero::asked_completion(argc, argv)) return print_completion(*shell);
  for (const Benchmark* b = benchmarks; b->name; ++b)
    if (word == b->name) return b->run(argc - 1, argv + 1);
  if (argc > 1) std::fprintf(stderr, "error: %s: is no benchmark\n", argv[1]);
  print_usage(stderr);
  return 2;
}

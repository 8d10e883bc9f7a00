// zero_bench: measures what the project promises. Every benchmark prints a table for people, or JSON lines with --json.
#include <cstdio>
#include <cstring>

#include "benchmarks/benchmarks.h"

namespace {

struct Benchmark {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* what;
};

const Benchmark benchmarks[] = {
    {"collectives", zero::bench_collectives, "times and bandwidths of the collectives; start it under mpirun"},
    {"memory", zero::bench_memory, "bytes per rank at each stage, predicted and measured; start it under mpirun, or with --fake-ranks"},
    {"model", zero::bench_model, "forward and backward of one rank, and the parts of a block"},
    {"optimizer", zero::bench_optimizer, "AdamW on host memory beside copy bandwidth and LibTorch"},
    {"step", zero::bench_step, "a training step at each stage: seconds, tokens per second, bytes"},
    {nullptr, nullptr, nullptr},
};

int usage() {
  std::fputs("usage: zero_bench BENCHMARK [options]\n", stderr);
  for (const Benchmark* b = benchmarks; b->name; ++b) std::fprintf(stderr, "  %-12s %s\n", b->name, b->what);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return usage();
  for (const Benchmark* b = benchmarks; b->name; ++b)
    if (std::strcmp(argv[1], b->name) == 0) return b->run(argc - 1, argv + 1);
  return usage();
}

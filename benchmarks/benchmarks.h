#pragma once
// The benchmarks of zero_bench. Each receives the arguments that follow its name, and returns an exit code.
#include <optional>

namespace CLI {
class App;
}

namespace zero {

int bench_blocks(int argc, char** argv);
int bench_checkpoint(int argc, char** argv);
int bench_collectives(int argc, char** argv);
int bench_memory(int argc, char** argv);
int bench_model(int argc, char** argv);
int bench_optimizer(int argc, char** argv);
int bench_products(int argc, char** argv);
int bench_step(int argc, char** argv);  // calls bench_device_step for --device cuda
int bench_device_step(int argc, char** argv);

/// Parses a benchmark's command line. Returns the exit code if there is nothing to measure
/// (zero/programs/command_line.h).
std::optional<int> parse(CLI::App& app, int argc, char** argv);

}  // namespace zero

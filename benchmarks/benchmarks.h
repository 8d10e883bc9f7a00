#pragma once
// The benchmarks of zero_bench. Each takes the arguments after its own name and returns an exit code.
namespace zero {

int bench_collectives(int argc, char** argv);
int bench_memory(int argc, char** argv);
int bench_model(int argc, char** argv);
int bench_optimizer(int argc, char** argv);
int bench_step(int argc, char** argv);         // --device cuda: bench_device_step
int bench_device_step(int argc, char** argv);

}  // namespace zero

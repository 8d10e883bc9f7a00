// zero_bench step: seconds, tokens per second and bytes of a training step at each stage.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/step_run.h"
#include "comm/world/job.h"
#include "models/formats/hf_directory.h"
#include "models/nn/matmul_setting.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

struct Options {
  StepWork work;
  std::string preset = "llama-110m";
  std::string precision = "fp32";
  std::string matmul = "highest";
  std::vector<int> stages{0, 1, 2, 3};
  int threads = 0;
  bool json = false;
};

constexpr double mib = 1024.0 * 1024.0;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double tokens_of(const StepWork& work, int ranks) {
  return double(work.seq * work.local_batch * work.micro_batches * ranks);
}

nlohmann::json bytes_by_category(const std::array<double, memory_categories>& bytes) {
  nlohmann::json object;
  for (int c = 0; c < memory_categories; ++c) object[name_of(MemoryCategory(c))] = bytes[c];
  return object;
}

void print_json(const Options& options, int stage, int ranks, const StepMeasurement& r) {
  const StepWork& work = options.work;
  const double middle = median(r.seconds);
  const StepParts& p = r.parts;
  const nlohmann::json line{{"version", 3},
                            {"benchmark", "step"},
                            {"engine", "zero" + std::to_string(stage)},
                            {"stage", stage},
                            {"model", work.weights.empty() ? options.preset : work.weights},
                            {"dtype", options.precision},
                            {"split_master", work.split_master},
                            {"optimizer", work.optimizer},
                            {"world", ranks},
                            {"threads", at::get_num_threads()},
                            {"seq", work.seq},
                            {"batch", work.local_batch},
                            {"accum", work.micro_batches},
                            {"recompute_every", work.recompute_every},
                            {"keep_inputs", work.keep_inputs},
                            {"as_module", work.as_module},
                            {"step_s", r.seconds},
                            {"median_step_s", middle},
                            {"min_step_s", *std::min_element(r.seconds.begin(), r.seconds.end())},
                            {"max_step_s", *std::max_element(r.seconds.begin(), r.seconds.end())},
                            {"tokens_per_s", tokens_of(work, ranks) / middle},
                            {"losses", r.losses},
                            {"parts_s",
                             {{"forward", p.forward},
                              {"backward", p.backward},
                              {"optimizer", p.optimizer},
                              {"gather", p.gather},
                              {"reduce", p.reduce},
                              {"gather_updated", p.gather_updated}}},
                            {"rest_bytes", bytes_by_category(r.memory.rest)},
                            {"peak_bytes", bytes_by_category(r.memory.peak)},
                            {"rest_sum", r.memory.rest_sum},
                            {"peak_sum", r.memory.peak_sum},
                            {"peak_pss", r.memory.pss},
                            {"vmhwm", r.memory.resident}};
  std::puts(line.dump().c_str());
}

void print_table(const Options& options, int ranks, const std::vector<StepMeasurement>& results) {
  std::printf(
      "\nstep in seconds                              | seconds by part, mean over ranks; the last three are collectives\n");
  std::printf(
      "stage   median [   min,    max]  tokens/s    loss | forward backward  optimizer  gather  reduce  updated\n");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const StepMeasurement& r = results[i];
    const auto [low, high] = std::minmax_element(r.seconds.begin(), r.seconds.end());
    const StepParts& p = r.parts;
    std::printf("%5d  %7.3f [%6.3f, %6.3f] %9.0f %7.4f | %7.3f %8.3f %10.3f %7.3f %7.3f %8.3f\n", options.stages[i],
                median(r.seconds), *low, *high, tokens_of(options.work, ranks) / median(r.seconds), r.losses.back(),
                p.forward, p.backward, p.optimizer, p.gather, p.reduce, p.gather_updated);
  }
  std::printf("\nMiB of the fullest rank: between steps / peak while training\n");
  std::printf("stage %17s %17s %17s %17s %17s %17s   peak Pss    VmHWM\n", "parameters", "gradients", "optimizer",
              "buffers", "activations", "all");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const StepMemory& m = results[i].memory;
    std::printf("%5d", options.stages[i]);
    for (int c = 0; c < int(MemoryCategory::other); ++c)
      std::printf("  %7.1f /%7.1f", m.rest[c] / mib, m.peak[c] / mib);
    std::printf("  %7.1f /%7.1f %10.1f %8.1f\n", m.rest_sum / mib, m.peak_sum / mib, m.pss / mib, m.resident / mib);
  }
}

void add_options(CLI::App& app, Options& options) {
  StepWork& work = options.work;
  app.add_option("--preset", options.preset, "the model");
  app.add_option("--path", work.weights, "a Hugging Face directory instead: model and first weights");
  app.add_option("--seq", work.seq, "tokens of a sequence")->check(CLI::Range(2, 1 << 20));
  app.add_option("--local-batch", work.local_batch, "sequences of a micro-batch of one rank")
      ->check(CLI::PositiveNumber);
  app.add_option("--micro-batches", work.micro_batches, "of a step, per rank")->check(CLI::PositiveNumber);
  app.add_option("--precision", options.precision, "of computing")->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_flag("--split-master", work.split_master, "masters are 16 bits beside the bf16 weights");
  app.add_option("--matmul", options.matmul, "precision of fp32 products")
      ->check(CLI::IsMember({"highest", "high", "medium"}));
  app.add_option("--stages", options.stages, "in turn, in one process")->delimiter(',')->check(CLI::Range(0, 3));
  app.add_option("--steps", work.steps, "of each stage")->check(CLI::PositiveNumber);
  app.add_option("--warmup", work.warmup, "of those, not timed")->check(CLI::NonNegativeNumber);
  app.add_option("--recompute-every", work.recompute_every, "every k-th block is computed again in backward; 0: none");
  app.add_flag("--keep", work.keep_inputs, "what norms and activations give is kept for backward");
  app.add_option("--as-module", work.as_module,
                 "the units as a torch module of which so many are unsharded at once; 0: as a chain")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--optimizer", work.optimizer, "with its own defaults")->check(CLI::IsMember(optimizer_names()));
  app.add_option("--threads", options.threads, "per rank; default: cores of the node / its ranks");
  app.add_flag("--json", options.json, "JSON lines");
}

int run(Options options, Job& job) {
  StepWork& work = options.work;
  if (work.warmup >= work.steps)
    throw InputError(text("--warmup ", work.warmup, " leaves none of ", work.steps, " steps to be timed"));
  if (work.as_module > 0 && work.recompute_every > 0)
    throw InputError("--recompute-every is of a chain: leave it or --as-module out");
  if (work.split_master && options.precision != "bf16")
    throw InputError("--split-master needs --precision bf16, whose weights hold the master's other bits");
  if (options.threads <= 0) options.threads = job.cores();
  at::set_num_threads(options.threads);
  CpuAllocator allocator;
  allocator.install();
  MemoryTracker tracker;
  TrackerScope scope(tracker);
  work.model = work.weights.empty() ? preset_config(options.preset) : HfDirectory(work.weights).config();
  if (work.seq > work.model.max_position_embeddings)
    throw InputError(
        text("--seq ", work.seq, " is longer than the model's context, ", work.model.max_position_embeddings));
  work.bf16 = options.precision == "bf16";
  const std::string matmul = choose_matmul(matmul_precision_of(options.matmul));
  const bool tell = job.rank() == 0;
  if (tell && !options.json)
    std::printf("%s, %s, %d ranks x %lld micro-batches x %lld sequences of %lld tokens, %d threads a rank\n%s\n",
                work.weights.empty() ? options.preset.c_str() : work.weights.c_str(), options.precision.c_str(),
                job.size(), (long long)work.micro_batches, (long long)work.local_batch, (long long)work.seq,
                at::get_num_threads(), matmul.c_str());
  std::vector<StepMeasurement> results;
  for (const int stage : options.stages) {
    results.push_back(run_steps(work, stage, job.communicator(), tracker, allocator));
    if (tell && options.json) print_json(options, stage, job.size(), results.back());
  }
  if (tell && !options.json) print_table(options, job.size(), results);
  return 0;
}

}  // namespace

int bench_step(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]).ends_with("cuda") && std::string(argv[i - (i > 1)]).starts_with("--device"))
      return bench_device_step(argc, argv);
  Options options;
  CLI::App app("A training step at each ZeRO stage, on synthetic tokens. Start it by mpirun for several ranks.",
               "zero_bench step");
  add_options(app, options);
  if (const auto code = parse(app, argc, argv)) return *code;
  return Job::run([&](Job& job) { return run(options, job); });
}

}  // namespace zero

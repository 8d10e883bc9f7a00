// zero_bench memory: bytes of each category per rank, predicted and measured, next to the ZeRO paper's formula.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/log.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/median.h"
#include "benchmarks/step_run.h"
#include "comm/agreement/agreement.h"
#include "comm/fake/fake_communicator.h"
#include "comm/world/job.h"
#include "models/nn/matmul_setting.h"
#include "offload/memory/process_memory.h"
#include "zero/config/model_paths.h"
#include "zero/config/offload_policy.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/estimate/memory_estimate.h"

namespace zero {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<int> stages{0, 1, 2, 3};
  std::vector<int> fake_ranks;
  int steps = 3;
  bool predict_only = false;
  bool json = false;
};

/// One stage on one number of ranks.
struct Row {
  int ranks = 1, stage = 0;
  MemoryPlan plan;
  PaperBytes paper;
  double process = 0;  // predicted Pss, next to the tracker
  std::optional<StepMeasurement> measured;
};

/// The parts that all rows share.
struct Bench {
  Options options;
  Config config;
  Job* job;
  CpuAllocator* allocator;
  MemoryTracker* tracker;
  std::int64_t process_now = 0;
};

using ByCategory = std::array<double, memory_categories>;

ByCategory predicted(const MemoryPlan& p, bool at_peak) {
  ByCategory bytes{};
  const auto set = [&](MemoryCategory category, std::int64_t value) { bytes[int(category)] = double(value); };
  set(MemoryCategory::parameters, p.parameters);
  set(MemoryCategory::gradients, p.gradients);
  set(MemoryCategory::optimizer, p.optimizer);
  set(MemoryCategory::buffers, p.gather_buffers + p.reduce_buffers);
  set(MemoryCategory::activations, at_peak ? p.activations.peak() : p.activations.at_rest);
  if (at_peak) set(MemoryCategory::other, p.activations.batch);
  return bytes;
}

Row predict(const Bench& bench, int stage, int ranks) {
  Config config = bench.config;
  config.zero.stage = stage;
  if (stage < 3) config.offload.parameters = "none";
  config.training.global_batch_size =
      config.training.local_batch_size * ranks * (BatchArithmetic::of(bench.config, bench.job->size()).accumulation);
  const BatchArithmetic batch = BatchArithmetic::of(config, ranks);
  const RunModel run = make_run_model(config, model_config_of(config), false);
  MemoryWork work = memory_work_of(config, batch);
  work.activations.masked_targets = true;  // the last token of a row has no target here
  Row row{ranks,
          stage,
          plan_memory(run.model, work),
          paper_bytes(double(run.model.trainable_numel()), frozen_bytes(run.model, work.engine), work.engine, ranks),
          0,
          {}};
  row.process = double(process_peak(bench.process_now, row.plan.training_peak()));
  return row;
}

StepWork work_of(const Bench& bench, int stage, int rank) {
  const Config& config = bench.config;
  StepWork work;
  work.model = model_config_of(config);
  work.weights = config.model.path.value_or("");
  work.seq = config.training.seq_len;
  work.local_batch = config.training.local_batch_size;
  work.micro_batches = BatchArithmetic::of(config, bench.job->size()).accumulation;
  work.bf16 = config.training.precision == "bf16";
  work.packed = config.data.packing;
  if (const auto lora = lora_options_of(config)) work.adapt = [lora](Model& model) { add_lora(model, *lora); };
  work.shard_degree = int(config.zero.shard_degree);
  work.steps = bench.options.steps;
  work.warmup = std::min(1, bench.options.steps - 1);
  work.adjust = [&bench, stage, rank](EngineOptions& options) {
    Config own = bench.config;
    own.zero.stage = stage;
    if (stage < 3) own.offload.parameters = "none";
    options = engine_options_of(own, BatchArithmetic::of(own, bench.job->size()));
    options.offload = offload_policy_of(own, rank, at::kCPU);
  };
  return work;
}

/// True if the node has enough memory for what the row needs on every rank. Equal on all ranks.
bool fits(const Bench& bench, const Row& row, int processes_here) {
  const NodeMemory memory = node_memory();
  const bool mine = memory.available < 0 ||
                    double(processes_here) * (double(row.plan.peak()) + row.process - double(bench.process_now)) <
                        double(memory.available);
  at::Tensor no = at::full({1}, mine ? 0.0 : 1.0, at::kDouble);
  bench.job->communicator().all_reduce(no, {at::kDouble, false});
  return no.item<double>() == 0;
}

void measure(const Bench& bench, Row& row, Communicator& communicator) {
  bench.allocator->trim();  // what the stage before held
  if (bench.options.predict_only || !fits(bench, row, bench.job->local_size())) return;
  const StepWork work = work_of(bench, row.stage, communicator.rank());
  row.measured = run_steps(work, row.stage, communicator, *bench.tracker, *bench.allocator);
}

nlohmann::json object_of(const ByCategory& bytes) {
  nlohmann::json object;
  for (int c = 0; c < memory_categories; ++c) object[name_of(MemoryCategory(c))] = bytes[c];
  return object;
}

void print_json(const Bench& bench, const Row& row) {
  const Config& c = bench.config;
  const MemoryPlan& p = row.plan;
  nlohmann::json line{{"version", 2},
                      {"benchmark", "memory"},
                      {"model", c.model.path ? *c.model.path : *c.model.preset},
                      {"dtype", c.training.precision},
                      {"world", row.ranks},
                      {"fake", !bench.options.fake_ranks.empty()},
                      {"stage", row.stage},
                      {"seq", c.training.seq_len},
                      {"batch", c.training.local_batch_size},
                      {"accum", BatchArithmetic::of(c, bench.job->size()).accumulation},
                      {"checkpointing", c.activation_checkpoint.mode},
                      {"offload", {c.offload.optimizer, c.offload.parameters}}};
  line["paper"] = {
      {"parameters", row.paper.parameters}, {"gradients", row.paper.gradients}, {"optimizer", row.paper.optimizer}};
  line["predicted"] = {{"rest", object_of(predicted(p, false))},
                       {"peak", object_of(predicted(p, true))},
                       {"rest_sum", p.at_rest()},
                       {"peak_sum", p.training_peak()},
                       {"logits", p.activations.logits},
                       {"unit_gradients", p.activations.unit_gradients},
                       {"gather_buffers", p.gather_buffers},
                       {"reduce_buffers", p.reduce_buffers},
                       {"disk", p.disk},
                       {"process", row.process}};
  if (row.measured) {
    const StepMemory& m = row.measured->memory;
    line["measured"] = {{"rest", object_of(m.rest)},
                        {"peak", object_of(m.peak)},
                        {"rest_sum", m.rest_sum},
                        {"peak_sum", m.peak_sum},
                        {"pss", m.pss},
                        {"vmhwm", m.resident}};
    line["median_step_s"] = median(row.measured->seconds);
  }
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

// Columns in bytes: the formula (or the disk, if states lie there), five categories, and the peaks of tracker and
// process.
using Columns = std::array<std::string, 8>;

std::string joined(const Columns& cells) {
  std::string all;
  for (const std::string& cell : cells) all += std::string(cell.size() < 11 ? 11 - cell.size() : 1, ' ') + cell;
  return all;
}

void print_heads(const Bench& bench) {
  const OffloadConfig& offload = bench.config.offload;
  const bool disk = offload.optimizer == "nvme" || offload.parameters == "nvme";
  std::printf("\nbytes of one rank: states at rest, activations at their peak, peaks of tracker and process\n%s\n",
              disk ? "disk: of the states that lie there"
                   : "formula: the ZeRO paper's for parameters, gradients and optimizer");
  std::printf("ranks stage%s\n", joined({disk ? "disk" : "formula", "parameters", "gradients", "optimizer", "buffers",
                                         "activations", "peak", "process"})
                                     .c_str());
}

std::string error_of(double predicted, double measured) {
  char words[32];
  std::snprintf(words, sizeof words, "%+.2f %%", 100 * (predicted / measured - 1));
  return words;
}

std::string cell(double bytes) { return bytes_text(std::int64_t(bytes)); }

void print_row(const Row& row) {
  const ByCategory rest = predicted(row.plan, false), peak = predicted(row.plan, true);
  const int activations = int(MemoryCategory::activations);
  const double at_peak = double(row.plan.training_peak()), pss = at_peak + row.process;
  const auto columns = [&](const std::string& first, const ByCategory& still, double kept, double top, double process) {
    return Columns{first,          cell(still[0]), cell(still[1]), cell(still[2]),
                   cell(still[3]), cell(kept),     cell(top),      cell(process)};
  };
  std::printf("%5d %5d%s\n", row.ranks, row.stage,
              joined(columns(cell(row.plan.disk > 0 ? double(row.plan.disk) : row.paper.sum()), rest, peak[activations],
                             at_peak, pss))
                  .c_str());
  if (row.measured) {
    const StepMemory& m = row.measured->memory;
    std::printf("   measured%s\n", joined(columns("", m.rest, m.peak[activations], m.peak_sum, m.pss)).c_str());
    char step[32];
    std::snprintf(step, sizeof step, "%.2f s", median(row.measured->seconds));
    std::printf("       step%s\n",
                joined({step, "", "", "", "", "error", error_of(at_peak, m.peak_sum), error_of(pss, m.pss)}).c_str());
  }
  std::fflush(stdout);
}

int run(const Options& options, Job& job) {
  const std::int64_t process_now = pss_bytes();
  CpuAllocator allocator;
  allocator.install();
  MemoryTracker tracker;
  TrackerScope scope(tracker);
  if (!std::getenv("OMP_NUM_THREADS")) at::set_num_threads(job.cores());
  if (!options.fake_ranks.empty() && job.size() > 1)
    throw InputError("--fake-ranks pretends all ranks but one: start it without mpirun");
  Bench bench{options, {}, &job, &allocator, &tracker, process_now};
  all_or_none(job.control(), [&] {
    bench.config = load_config(options.config, options.overrides);
    if (bench.config.lora) bench.config.lora->adapter = adapter_of(bench.config.lora->adapter);
    if (bench.config.lora && bench.config.model.path && !options.predict_only)
      throw InputError(bench.config.where("model.path") +
                       ": [lora] is measured over a preset's random weights: name one, or add --predict");
    validate_for_model(bench.config, model_config_of(bench.config));
    validate_for(bench.config, job.size());
  });
  const std::string matmul = choose_matmul();
  const bool tell = job.rank() == 0;
  if (tell && !options.json) {
    std::printf("%s, %s, %lld sequences of %lld tokens in a micro-batch, %d threads a rank\n%s\n",
                options.config.c_str(), bench.config.training.precision.c_str(),
                (long long)bench.config.training.local_batch_size, (long long)bench.config.training.seq_len,
                at::get_num_threads(), matmul.c_str());
    print_heads(bench);
  }
  const std::vector<int> worlds = options.fake_ranks.empty() ? std::vector<int>{job.size()} : options.fake_ranks;
  for (const int ranks : worlds)
    for (const int stage : options.stages) {
      Row row = predict(bench, stage, ranks);
      FakeCommunicator fake(0, ranks);
      measure(bench, row, options.fake_ranks.empty() ? job.communicator() : fake);
      if (tell) options.json ? print_json(bench, row) : print_row(row);
    }
  return 0;
}

}  // namespace

int bench_memory(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Bytes of a training step at each ZeRO stage, predicted and measured on synthetic tokens. Start it by mpirun for several ranks.",
      "zero_bench memory");
  app.add_option("config", options.config, "a configuration of zero_train")->required();
  app.add_option("--set", options.overrides, "section.key=value, over the file; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--stages", options.stages, "in turn, in one process")->delimiter(',')->check(CLI::Range(0, 3));
  app.add_option("--fake-ranks", options.fake_ranks, "look at one rank of so many pretended ones, in turn")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps, "of each stage, the first not timed")->check(CLI::PositiveNumber);
  app.add_flag("--predict", options.predict_only, "measure nothing");
  app.add_flag("--json", options.json, "JSON lines");
  if (const auto code = parse(app, argc, argv)) return *code;
  return Job::run([&](Job& job) { return run(options, job); });
}

}  // namespace zero

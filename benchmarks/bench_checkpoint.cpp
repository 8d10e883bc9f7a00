// zero_bench checkpoint: how long training waits for a checkpoint that is written in the background. It alternates
// between a plain copy of the same states and a synchronous checkpoint.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/median.h"
#include "comm/object_collectives.h"
#include "comm/world/job.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "models/model.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/checkpoint/save_checkpoint.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string preset = "llama-110m";
  std::string directory;
  int stage = 3;
  int repeats = 5;
  bool json = false;
};

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Fills the moments, because pages that were never written are read faster than others.
void touch_states(Engine& engine) {
  for (const auto& group : engine.groups())
    for (const auto& shard : group->states()) {
      const std::vector<StateSpec> specs = group->visited_states(*shard);
      group->visit_states(*shard, StateAccess::write, [&](const StateChunk& chunk) {
        for (std::size_t s = 0; s < specs.size(); ++s)
          std::memset(chunk.states[s], 1, std::size_t(specs[s].bytes(chunk.end - chunk.begin)));
      });
    }
}

/// All states of this rank, one after the other, as far as there is room. Bytes.
std::int64_t copy_plainly(Engine& engine, const HostArena& to) {
  std::int64_t done = 0;
  for (const auto& group : engine.groups())
    for (const auto& shard : group->states()) {
      const std::vector<StateSpec> specs = group->visited_states(*shard);
      group->visit_states(*shard, StateAccess::read, [&](const StateChunk& chunk) {
        for (std::size_t s = 0; s < specs.size(); ++s) {
          const std::int64_t bytes =
              std::min(specs[s].bytes(chunk.end - chunk.begin), std::int64_t(to.block_bytes()) - done);
          std::memcpy(to.block(0) + done, chunk.states[s], std::size_t(bytes));
          done += bytes;
        }
      });
    }
  return done;
}

/// The seconds for which training is blocked on this rank, and the seconds until the checkpoint is complete.
std::pair<double, double> save_behind(Engine& engine, CheckpointFolders& folders, FileCalls& calls,
                                      Communicator& control, int step, HostArena& copy) {
  const auto begin = Clock::now();
  RunPosition position;
  position.steps = step;
  CheckpointSave save(engine, {}, position, folders, calls, control, {.keep = 1, .copy = &copy});
  double waited = since(begin);
  for (bool goes_on = true; goes_on;) {
    while (save.progress() == SaveProgress::under_way) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    control.barrier();  // a step's end, where all ranks know of each other
    const auto wakes = Clock::now();
    goes_on = save.go_on();
    waited += since(wakes);
  }
  return {waited, since(begin)};
}

struct Times {
  std::vector<double> copy, waited, behind, synchronous;
};

double of_slowest(Communicator& ranks, double seconds) {
  std::int64_t most = 0;
  for (const std::int64_t ns : all_gather_number(ranks, std::int64_t(seconds * 1e9))) most = std::max(most, ns);
  return double(most) * 1e-9;
}

Times measure(const Options& options, Engine& engine, Job& job, HostArena& copy) {
  FileCalls calls;
  CheckpointFolders folders(calls, options.directory + "/checkpoints");
  Communicator& control = job.control();
  Times times;
  for (int turn = 0; turn <= options.repeats; ++turn) {
    control.barrier();
    auto begin = Clock::now();
    copy_plainly(engine, copy);
    const double plain = of_slowest(control, since(begin));
    control.barrier();
    const auto [own_wait, own_sum] = save_behind(engine, folders, calls, control, 2 * turn + 1, copy);
    const double waited = of_slowest(control, own_wait), behind = of_slowest(control, own_sum);
    control.barrier();
    begin = Clock::now();
    RunPosition position;
    position.steps = 2 * turn + 2;
    save_checkpoint(engine, {}, position, folders, calls, control, {.keep = 1});
    const double synchronous = of_slowest(control, since(begin));
    if (turn == 0) continue;  // warms up
    times.copy.push_back(plain);
    times.waited.push_back(waited);
    times.behind.push_back(behind);
    times.synchronous.push_back(synchronous);
  }
  return times;
}

void print(const Options& options, int ranks, std::int64_t bytes, const Times& times) {
  const double copy = median(times.copy), waited = median(times.waited);
  if (options.json) {
    const nlohmann::json line{{"version", 1},
                              {"benchmark", "checkpoint"},
                              {"model", options.preset},
                              {"stage", options.stage},
                              {"world", ranks},
                              {"shard_bytes", bytes},
                              {"copy_s", times.copy},
                              {"waited_s", times.waited},
                              {"behind_s", times.behind},
                              {"synchronous_s", times.synchronous},
                              {"waited_by_copy", waited / copy}};
    std::puts(line.dump().c_str());
    return;
  }
  std::printf("%s, stage %d, %d ranks, %.0f MiB a rank; medians of %zu turns, of the slowest rank\n",
              options.preset.c_str(), options.stage, ranks, double(bytes) / (1 << 20), times.copy.size());
  const auto row = [&](const char* what, double seconds) {
    std::printf("  %-44s %9.3f s %8.2f x\n", what, seconds, seconds / copy);
  };
  row("plain copy of the states", copy);
  row("waited for a checkpoint behind the run", waited);
  row("until that one is there", median(times.behind));
  row("a checkpoint that is waited for", median(times.synchronous));
}

int run(const Options& options, Job& job) {
  at::set_num_threads(job.cores());
  CpuAllocator allocator;
  allocator.install();
  MemoryTracker tracker;
  TrackerScope scope(tracker);
  Mesh mesh(job.communicator(), MeshShape::hybrid(job.size(), 0));
  EngineOptions engine_options;
  engine_options.plan = ShardPlan::for_stage(options.stage);
  engine_options.precision.compute = engine_options.precision.gradient = at::kBFloat16;
  Model model = make_model(preset_config(options.preset));
  Engine engine(chain_of(model), mesh, engine_options);
  RandomWeights weights(model, 0);
  engine.load(weights);
  touch_states(engine);
  const std::int64_t bytes = shard_bytes(engine)[std::size_t(job.rank())];
  HostArena copy(1, std::size_t(bytes), MemoryCategory::buffers);
  std::memset(copy.block(0), 0, copy.block_bytes());
  const Times times = measure(options, engine, job, copy);
  if (job.rank() == 0) print(options, job.size(), bytes, times);
  return 0;
}

}  // namespace

int bench_checkpoint(int argc, char** argv) {
  Options options;
  CLI::App app("How long training waits for a checkpoint; start it under mpirun", "zero_bench checkpoint");
  app.add_option("--preset", options.preset, "the model");
  app.add_option("--stage", options.stage, "ZeRO stage")->check(CLI::Range(0, 3));
  app.add_option("--repeats", options.repeats, "turns")->check(CLI::PositiveNumber);
  app.add_option("--directory", options.directory, "where checkpoints/ is made")->required();
  app.add_flag("--json", options.json, "JSON lines");
  if (const auto code = parse(app, argc, argv)) return *code;
  return Job::run([&](Job& job) { return run(options, job); });
}

}  // namespace zero

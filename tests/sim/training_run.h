#pragma once
// A short training run on simulated ranks, through the engine alone: the bench of the parity, traffic and memory tests.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "base/memory_tracker.h"
#include "comm/sim/sim_world.h"
#include "models/lora/lora.h"
#include "models/model.h"
#include "zero/core/engine.h"

namespace zero::testing {

struct RunOptions {
  int stage = 0;
  int ranks = 1;
  int threads = 1;        // of each rank
  int micro_batches = 1;  // of each rank in a step
  int under_way = 1;      // micro-batches whose forward has run and whose backward has not, at most
  int shard_degree = 0;
  int context = 1;  // ranks of the context axis, and of the tensor axis; the others share the batch
  int tensor = 1;
  int pipeline = 1;  // ranks of the pipeline axis
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int chunks = 1;
  int steps = 8;
  int global_batch = 24;
  int seq_len = 6;
  double max_norm = 0.5;
  OptimizerOptions optimizer;
  StateStorage storage;
  double lr = 0.01;
  at::ScalarType compute = at::kDouble;
  at::ScalarType master = at::kDouble;
  int recompute_every = 0;
  bool overlap = false;
  std::function<OffloadPolicy(int rank)> policy_of;  // empty: all states in memory
  std::uint64_t schedule_seed = 0;
  ModelConfig config;
  std::optional<LoraOptions> lora;  // adapters whose B matrices start random, so that every gradient shows
  bool ragged = false;              // samples of different length, with padding behind their ends
  bool packed = false;              // rows of two documents, the first as long as a ragged row
  bool keep_frozen = false;
  FrozenFormat frozen = {};
  std::string base;  // model whose weights the adapters stand on; empty: random ones
  bool recompute_attention = false;
  bool keep_inputs = false;
  std::int64_t mlp_tokens = 0;
  bool inputs_on_host = false;
  bool fuse_accumulation = false;
  std::optional<at::ScalarType> gradient = {};  // at rest; none: the master's type if micro-batches accumulate or sums
                                                // are in order
  std::function<void(int rank, const StepResult&)> after_update;
  bool keep_gradients = false;   // of the first step
  bool only_last_token = false;  // of each row is trained
  std::int64_t logits_bytes = 0;
  int rows_in_order = 0;  // sums in order, over micro-batches of that many rows; overrides micro_batches
  int first_step = 0;     // of a resumed run: `after_step` loads the states at its first call, with this step
};

struct RunResult {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> weights;    // after the last step, in master type
  std::map<std::string, at::Tensor> gradients;  // of the first step, if it was asked for them
  std::vector<std::vector<SimCall>> calls;      // by rank
};

/// A decoder small enough for fp64: 2 blocks, grouped-query attention, odd sizes.
ModelConfig small_config(bool tied);

/// The tokens of global sample `sample`: [seq_len + 1], learnable.
std::vector<std::int64_t> sample_tokens(std::int64_t sample, int seq_len, std::int64_t vocab);

/// `after_step` is called on every rank with its engine after each step, and once with step 0 before the first.
using AfterStep = std::function<void(Engine& engine, int rank, int step)>;
/// With `tracker_of`, each rank's allocations are booked in its tracker.
using TrackerOf = std::function<MemoryTracker&(int rank)>;
RunResult run_training(const RunOptions& options, const AfterStep& after_step = {}, const TrackerOf& tracker_of = {});

/// The largest difference of the losses, norms, weights and kept gradients of two runs.
double largest_difference(const RunResult& a, const RunResult& b);

}  // namespace zero::testing

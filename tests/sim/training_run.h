#pragma once
// A short training run on simulated ranks that uses only the engine. It is shared by the parity, traffic and memory
// tests.
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
  int under_way = 1;      // maximum number of micro-batches whose forward has run and whose backward has not
  int shard_degree = 0;
  int context = 1;  // ranks of the context and of the tensor axis; other ranks divide the batch
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
  std::optional<LoraOptions> lora;  // adapters whose B matrices start random, so that no gradient is zero
  bool ragged = false;              // samples of different lengths, padded at the end
  bool packed = false;              // rows of two documents, the first as long as a ragged row
  bool keep_frozen = false;
  FrozenFormat frozen = {};
  std::string base;  // folder of the base model for adapters; empty: random weights
  bool recompute_attention = false;
  bool keep_inputs = false;
  std::int64_t mlp_tokens = 0;
  bool inputs_on_host = false;
  bool write_gradients = true, fuse_accumulation = false;
  std::optional<at::ScalarType> gradient = {};  // at rest; none: the master's type if micro-batches accumulate or sums
                                                // are in order
  std::function<void(int rank, const StepResult&)> after_update;
  bool keep_gradients = false;   // of the first step
  bool only_last_token = false;  // only the last token of each row is trained
  std::int64_t logits_bytes = 0;
  int rows_in_order = 0;  // if above 0, sums are in order over micro-batches of this many rows; overrides micro_batches
  int first_step = 0;     // of a resumed run; at its first call, with this step, `after_step` loads the states
};

struct RunResult {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> weights;    // after the last step, in master type
  std::map<std::string, at::Tensor> gradients;  // of the first step, if keep_gradients is set
  std::vector<std::vector<SimCall>> calls;      // by rank
};

/// A decoder small enough for fp64: 2 blocks, grouped-query attention, odd sizes.
ModelConfig small_config(bool tied);

/// Returns the tokens of global sample `sample`, [seq_len + 1]. A model can learn them.
std::vector<std::int64_t> sample_tokens(std::int64_t sample, int seq_len, std::int64_t vocab);

/// `after_step` is called on every rank with its engine after each step, and once with step 0 before the first.
using AfterStep = std::function<void(Engine& engine, int rank, int step)>;
/// If given, each rank's allocations are recorded in the rank's tracker.
using TrackerOf = std::function<MemoryTracker&(int rank)>;
RunResult run_training(const RunOptions& options, const AfterStep& after_step = {}, const TrackerOf& tracker_of = {});

/// Returns the largest difference between the losses, norms, weights and kept gradients of two runs.
double largest_difference(const RunResult& a, const RunResult& b);

}  // namespace zero::testing

#pragma once
// StepRun: trains a model at one stage for a few steps of synthetic tokens, and reports where time and memory went.
//
// The work is the same as in benchmarks/peers/bench_peer.py: AdamW with constant settings. Token t of global sample g
// is splitmix64(g * seq + t) modulo min(vocabulary, 512), and targets are the inputs shifted by one. Like zero_train,
// and unlike the peers, a step also computes the gradients' norm. One-dimensional weights do not decay.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/memory_tracker.h"
#include "comm/communicator.h"
#include "models/model.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/core/engine.h"

namespace zero {

struct StepWork {
  ModelConfig model;
  std::string weights;  // a Hugging Face directory to start from; if empty, weights are drawn with seed 0
  std::int64_t seq = 256;
  std::int64_t local_batch = 2;
  std::int64_t micro_batches = 1;
  bool bf16 = false;
  bool split_master = false;  // masters are 16 bits beside the bf16 weights
  int steps = 8;
  int warmup = 2;  // the first steps, which are not timed
  int recompute_every = 0;
  bool keep_inputs = false;
  double lr = 1e-3;
  std::string optimizer = "adamw";             // with the optimizer's defaults
  bool packed = false;                         // rows hold documents of a quarter of their length
  std::function<void(Model&)> adapt;           // adds adapters to the model; may be empty
  int shard_degree = 0;                        // ranks that share one copy of the states; 0: all
  int as_module = 0;                           // run as a module with so many units unsharded at once; 0: as a chain
  std::function<void(EngineOptions&)> adjust;  // changes the engine's options last; may be empty
};

/// The seconds of one step on one rank, with collectives listed separately. They sum to the step's time, except for the
/// time to draw tokens.
struct StepParts {
  double forward = 0, backward = 0, optimizer = 0;    // computation; `optimizer` includes the gradients' norm
  double gather = 0, reduce = 0, gather_updated = 0;  // collectives, including waits for other ranks
};

struct StepMemory {
  std::array<double, memory_categories> rest{};  // tracked bytes between steps
  std::array<double, memory_categories> peak{};  // largest per category while training
  double rest_sum = 0, peak_sum = 0;
  double pss = 0;       // largest seen
  double resident = 0;  // VmHWM
};

struct StepMeasurement {
  std::vector<double> seconds;  // of the timed steps, on rank 0
  std::vector<double> losses;   // of all steps, means over the global batch
  StepParts parts;              // means over the timed steps and over ranks
  StepMemory memory;            // of the rank that uses most
};

/// Collective. `tracker` must be the one in scope. The allocator's pool is trimmed first.
StepMeasurement run_steps(const StepWork& work, int stage, Communicator& communicator, MemoryTracker& tracker,
                          CpuAllocator& allocator);

}  // namespace zero

#include "benchmarks/step_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "benchmarks/timed_communicator.h"
#include "benchmarks/unit_runner.h"
#include "models/families/families.h"
#include "models/formats/hf_weights.h"
#include "models/initial_weights.h"
#include "models/model.h"
#include "offload/memory/process_memory.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int most_sampled_steps = 2;  // beyond the timed ones, for the memory that the kernel counts

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Rows first..first + local_batch of the endless data set; the last position of a row has no target.
Batch draw_batch(const StepWork& work, std::int64_t first) {
  Batch batch;
  batch.ids = at::empty({work.local_batch, work.seq}, at::kLong);
  batch.targets = at::empty({work.local_batch, work.seq}, at::kLong);
  auto* ids = batch.ids.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  const auto choices = static_cast<std::uint64_t>(std::min<std::int64_t>(work.model.vocab_size, 512));
  for (std::int64_t i = 0; i < work.local_batch * work.seq; ++i)
    ids[i] = static_cast<std::int64_t>(splitmix64(static_cast<std::uint64_t>(first * work.seq + i)) % choices);
  for (std::int64_t i = 0; i < work.local_batch * work.seq; ++i)
    targets[i] = (i + 1) % work.seq == 0 ? ignored_target : ids[i + 1];
  if (!work.packed) return batch;
  const std::int64_t length = (work.seq + 3) / 4;
  const at::Tensor places = at::arange(work.seq, at::kLong).expand({work.local_batch, work.seq});
  batch.positions = places.remainder(length);
  batch.documents = places.div(length, "floor").to(at::kInt);
  return batch;
}

EngineOptions engine_options(const StepWork& work, int stage) {
  EngineOptions options;
  options.plan = ShardPlan::for_stage(stage);
  options.precision.compute = work.bf16 ? at::kBFloat16 : at::kFloat;
  options.precision.gradient = work.micro_batches > 1 ? at::kFloat : options.precision.compute;
  options.optimizer = optimizer_row(work.optimizer).defaults;
  options.optimizer.lr = work.lr;
  options.micro_batches = work.micro_batches;
  options.storage.split_master = work.split_master;
  options.recompute_every = work.recompute_every;
  options.keep_inputs = work.keep_inputs;
  if (work.as_module > 0) options.open_groups = work.as_module;
  if (work.adjust) work.adjust(options);
  return options;
}

class StepRun {
 public:
  StepRun(const StepWork& work, int stage, Communicator& communicator)
      : work_(work),
        communicator_(communicator),
        model_(model_of(work)),
        mesh_(communicator_, MeshShape::hybrid(communicator_.size(), work.shard_degree)) {
    const auto make_runner = work.as_module > 0 ? module_runner : chain_runner;
    if (work.weights.empty()) {
      RandomWeights weights(model_, 0);
      runner_ = make_runner(model_, mesh_, engine_options(work, stage), weights);
    } else {
      HfWeights weights(std::make_shared<const HfDirectory>(work.weights));
      weights.check(tensors_of(model_));
      runner_ = make_runner(model_, mesh_, engine_options(work, stage), weights);
    }
  }

  /// The step's mean loss over the global batch.
  double step(int index) {
    double sum = 0;
    for (std::int64_t a = 0; a < work_.micro_batches; ++a) sum += micro_batch(index, a);
    const auto step_start = Clock::now();
    runner_->update(work_.lr, sum);
    parts_.optimizer += since(step_start);
    const at::Tensor total = at::full({1}, sum, at::kDouble);
    communicator_.all_reduce(total, {at::kDouble, false});
    return total.item<double>() / trained_tokens();
  }

  void reset_parts() {
    parts_ = {};
    communicator_.reset();
  }

  StepParts parts(int steps) const {
    StepParts p = parts_;
    p.gather = communicator_.seconds(Phase::forward) + communicator_.seconds(Phase::backward);
    p.reduce = communicator_.seconds(Phase::reduce);
    p.gather_updated = communicator_.seconds(Phase::gather_updated);
    p.forward -= communicator_.seconds(Phase::forward);
    p.backward -= communicator_.seconds(Phase::backward) + p.reduce;
    p.optimizer -= p.gather_updated;
    for (double* part : {&p.forward, &p.backward, &p.optimizer, &p.gather, &p.reduce, &p.gather_updated})
      *part /= steps;
    return p;
  }

 private:
  static Model model_of(const StepWork& work) {
    Model model = make_model(work.model);
    if (work.adapt) work.adapt(model);
    return model;
  }

  double trained_tokens() const {
    return double(work_.local_batch * work_.micro_batches * communicator_.size()) * double(work_.seq - 1);
  }

  double micro_batch(int index, std::int64_t a) {
    const std::int64_t first =
        ((index * work_.micro_batches + a) * communicator_.size() + communicator_.rank()) * work_.local_batch;
    const Batch batch = draw_batch(work_, first);
    ForwardContext context;
    context.batch = &batch;
    context.training = true;
    context.first_sample = first;
    const double scale = context.gradient_scale = 1.0 / trained_tokens();
    const auto start = Clock::now();
    runner_->forward(context, {a == 0, a + 1 == work_.micro_batches});
    const auto middle = Clock::now();
    const double loss = runner_->backward(scale);
    parts_.backward += since(middle);
    parts_.forward += std::chrono::duration<double>(middle - start).count();
    return loss;
  }

  const StepWork& work_;
  TimedCommunicator communicator_;
  Model model_;
  Mesh mesh_;
  std::unique_ptr<UnitRunner> runner_;
  StepParts parts_;
};

StepMemory memory_of(const MemoryTracker& tracker) {
  StepMemory memory;
  for (int c = 0; c < memory_categories; ++c) {
    memory.rest[c] = double(tracker.live(MemoryCategory(c)));
    memory.peak[c] = double(tracker.peak(MemoryCategory(c)));
  }
  memory.rest_sum = double(tracker.live());
  memory.peak_sum = double(tracker.peak());
  return memory;
}

/// Both structs consist only of doubles. Each becomes the mean or the maximum over ranks.
template <class Numbers, class Fold>
Numbers over_ranks(const Numbers& mine, Communicator& communicator, const Fold& fold) {
  constexpr std::int64_t count = sizeof(Numbers) / sizeof(double);
  const at::Tensor own = at::from_blob(const_cast<Numbers*>(&mine), {count}, at::kDouble).clone();
  const at::Tensor all = at::empty({communicator.size() * count}, at::kDouble);
  communicator.all_gather_into(all, own);
  const at::Tensor folded = fold(all.view({communicator.size(), count})).contiguous();
  Numbers result;
  std::copy_n(folded.template data_ptr<double>(), count, reinterpret_cast<double*>(&result));
  return result;
}

}  // namespace

StepMeasurement run_steps(const StepWork& work, int stage, Communicator& communicator, MemoryTracker& tracker,
                          CpuAllocator& allocator) {
  allocator.trim();
  reset_peak_resident_bytes();
  StepMeasurement result;
  StepMemory memory;
  StepParts parts;
  {
    StepRun run(work, stage, communicator);
    for (int s = 0; s < work.steps; ++s) {
      if (s == work.warmup) {
        run.reset_parts();
        tracker.reset_peak();
      }
      communicator.barrier();
      const auto start = Clock::now();
      result.losses.push_back(run.step(s));
      if (s >= work.warmup) result.seconds.push_back(since(start));
    }
    parts = run.parts(work.steps - work.warmup);
    memory = memory_of(tracker);
    PssSampler sampler(std::chrono::milliseconds(20));
    for (int s = 0; s < std::min(most_sampled_steps, work.steps); ++s) run.step(work.steps + s);
    memory.pss = double(sampler.peak());
    memory.resident = double(peak_resident_bytes());
  }
  result.parts = over_ranks(parts, communicator, [](const at::Tensor& all) { return all.mean(0); });
  result.memory = over_ranks(memory, communicator, [](const at::Tensor& all) { return all.amax(0); });
  return result;
}

}  // namespace zero

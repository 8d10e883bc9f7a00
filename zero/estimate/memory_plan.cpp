#include "zero/estimate/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "comm/collective_memory.h"
#include "models/ops/matrix_product.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/config/data_files.h"
#include "zero/config/setup.h"
#include "zero/core/chain.h"

namespace zero {
namespace {

std::int64_t bytes_of(at::ScalarType type) { return std::int64_t(c10::elementSize(type)); }

// For ranks on GPUs: one chunk for each communicator that reduces. Between nodes, sums travel in their own type, twice
// as wide as bf16.
std::int64_t parts_of_sums(const MetaRank& rank) {
  const auto parts = [](std::int64_t bytes) { return std::min(2 * bytes, sum_chunk_bytes); };
  return parts(rank.largest_sum()) + parts(rank.largest_replica_sum());
}

// Stores for a GPU's states are in host memory, pinned if copies overlap with the computation.
void add_offloaded(MemoryPlan& plan, MetaRank& rank, const MemoryWork& work) {
  const OffloadedBytes& offloaded = rank.offloaded();
  plan.disk = offloaded.disk;
  if (!work.on_device) {
    plan.parameters += offloaded.weights;
    plan.optimizer += offloaded.optimizer;
    return;
  }
  plan.host = offloaded.optimizer;
  (work.parameters_on_disk ? plan.host : plan.pinned) += offloaded.weights;
  if (!work.optimizer_in_store) return;
  for (const auto& group : rank.engine().groups())
    if (group->is_here() && group->spec().trainable) plan.pinned += group->host_update_shape().bytes();
}

std::int64_t trained_elements(const ParameterGroup& group) {
  return group.spec().trainable ? group.layout().numel() : 0;
}

}  // namespace

std::int64_t MemoryPlan::peak() const { return std::max({training_peak(), at_rest() + load, at_rest() + save}); }

const ActivationBytes& MemoryPlanner::activations(const MemoryWork& work, std::optional<at::ScalarType> written) {
  ActivationWork own = work.activations;
  own.compute = work.engine.precision.compute;
  own.on_device = work.on_device;
  static_cast<KeptOptions&>(own) = work.engine;
  own.inputs_on_host = own.inputs_on_host && work.on_device;
  own.written_gradient = written;
  own.stage = work.stage;
  const auto [place, is_new] = known_.try_emplace(own);
  if (is_new) place->second = plan_activations(model_, own);
  return place->second;
}

MemoryPlan MemoryPlanner::plan(MemoryWork work) {
  std::vector<MemoryPlan> stages;
  for (work.stage = 0; work.stage < work.mesh.pipeline; ++work.stage) stages.push_back(plan_of_stage(work));
  const auto by_peak = [](const MemoryPlan& a, const MemoryPlan& b) { return a.training_peak() < b.training_peak(); };
  MemoryPlan fullest = *std::max_element(stages.begin(), stages.end(), by_peak);
  for (const MemoryPlan& stage : stages) {  // another stage may need most on disk, in host memory, or to load and save
    for (std::int64_t MemoryPlan::*bytes : {&MemoryPlan::disk, &MemoryPlan::host, &MemoryPlan::pinned})
      fullest.*bytes = std::max(fullest.*bytes, stage.*bytes);
    for (std::int64_t MemoryPlan::*bytes : {&MemoryPlan::load, &MemoryPlan::save})
      fullest.*bytes = std::max(fullest.*bytes, stage.at_rest() + stage.*bytes - fullest.at_rest());
  }
  return fullest;
}

MemoryPlan MemoryPlanner::plan_of_stage(const MemoryWork& work) {
  MemoryPlan plan;
  std::optional<MetaRank> held(std::in_place, chain_of(model_), work.engine, work);
  MetaRank& rank = *held;
  plan.parameters = rank.live(MemoryCategory::parameters);
  plan.gradients = rank.live(MemoryCategory::gradients);
  plan.optimizer = rank.live(MemoryCategory::optimizer);
  plan.gather_buffers = rank.engine().gather_buffer_bytes();
  plan.reduce_buffers = rank.engine().reduce_buffer_bytes();
  if (work.on_device) {
    plan.sums = parts_of_sums(rank);
    plan.workspace = device_product_workspace;
  }
  plan.matrices = rank.whole_matrices();
  add_offloaded(plan, rank, work);
  const auto& groups = rank.engine().groups();
  const bool whole =
      std::all_of(groups.begin(), groups.end(), [](const auto& group) { return group->spec().trainable; });
  for (const auto& group : groups) plan.load = std::max(plan.load, group->load_bytes());
  plan.save = rank.engine().export_bytes(/*trainable_only=*/!whole);  // else an adapter
  if (sizes_checkpoints_ || work.copies_checkpoints) add_checkpoint(plan, rank, work);
  const auto largest = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return trained_elements(*a) < trained_elements(*b);
  });
  const std::optional<at::ScalarType> written = (*largest)->written_gradient();
  held.reset();  // the parameters get another run's tensors
  plan.activations = activations(work, written);
  plan.pinned += plan.activations.on_host;
  return plan;
}

void MemoryPlanner::add_checkpoint(MemoryPlan& plan, MetaRank& rank, const MemoryWork& work) const {
  const std::vector<std::int64_t> shards = shard_bytes(rank.engine());
  plan.checkpoint = std::accumulate(shards.begin(), shards.end(), std::int64_t{0});
  if (work.copies_checkpoints)
    (work.on_device ? plan.host : plan.copy) += *std::max_element(shards.begin(), shards.end());
}

MemoryPlan plan_memory(const Model& model, const MemoryWork& work) { return MemoryPlanner(model).plan(work); }

MemoryWork memory_work_of(const Config& config, const BatchArithmetic& batch) {
  MemoryWork work;
  work.engine = engine_options_of(config, batch);
  work.optimizer_on_disk = config.offload.optimizer == "nvme";
  work.parameters_on_disk = config.offload.parameters == "nvme";
  work.parameters_in_store = config.offload.parameters != "none";
  work.optimizer_in_store = config.offload.optimizer != "none";
  work.copies_checkpoints = copies_checkpoints(config);
  work.mesh = batch.mesh;
  work.activations.context_ranks = batch.mesh.context;
  work.activations.tensor_ranks = batch.mesh.tensor;
  work.activations.stages = batch.mesh.pipeline;
  if (batch.mesh.pipeline > 1) {
    work.activations.schedule = work.engine.pipeline.schedule;
    work.activations.chunks = work.engine.pipeline.chunks;
    work.activations.micro_batches = batch.accumulation;
  }
  work.activations.batch = batch.local_batch_size;
  work.activations.seq_len = config.row_tokens();
  work.activations.packed = config.has_documents();
  for (const std::string& file : config.data.train)
    if (data_kind(file) == "jsonl") work.activations.masked_targets = true;
  return work;
}

PaperBytes paper_bytes(double trained, double frozen_bytes, const EngineOptions& engine, int ranks) {
  const auto share = [&](Placement placement, double bytes) {
    return bytes / (placement == Placement::sharded ? ranks : 1);
  };
  const Precision& precision = engine.precision;
  const StateStorage& storage = engine.storage;
  const double moments = 2 * double(bytes_of(storage.bf16_states ? at::kBFloat16 : precision.master));
  const double master = double(bytes_of(storage.split_master ? at::kShort : precision.master));
  const double states = moments + (precision.weights_are_master() ? 0 : master);
  const double frozen = engine.keep_frozen ? frozen_bytes : share(engine.plan.parameters, frozen_bytes);
  return {share(engine.plan.parameters, trained * double(bytes_of(precision.compute))) + frozen,
          share(engine.plan.gradients, trained * double(bytes_of(precision.gradient))),
          share(engine.plan.optimizer, trained * states)};
}

double frozen_bytes(const Model& model, const EngineOptions& engine) {
  EngineOptions whole = engine;
  whole.plan = ShardPlan::for_stage(0);
  MetaRank rank(chain_of(model), whole, {});
  std::int64_t bytes = rank.live(MemoryCategory::parameters);
  for (const auto& group : rank.engine().groups())
    if (group->spec().trainable) bytes -= group->layout().numel() * bytes_of(engine.precision.compute);
  return double(bytes);
}

}  // namespace zero

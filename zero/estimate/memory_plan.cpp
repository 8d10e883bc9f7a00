#include "zero/estimate/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "comm/collective_memory.h"
#include "offload/disk/disk_file.h"
#include "offload/disk/disk_shard_store.h"
#include "offload/disk/disk_tier.h"
#include "offload/quantized/nf4.h"
#include "offload/shard_store.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/config/config_rules.h"
#include "zero/config/setup.h"
#include "zero/core/buffers/frozen_codec.h"
#include "zero/core/slot_sizes.h"

namespace zero {
namespace {

constexpr std::int64_t load_chunk_bytes = (4 << 20) * 4;  // of ParameterGroup::load

std::int64_t bytes_of(at::ScalarType type) { return std::int64_t(c10::elementSize(type)); }
std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }
std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t(0));
}

/// Ranks that share one copy of the states.
int sharing_ranks(const MemoryWork& work) {
  return work.engine.shard_degree > 0 ? work.engine.shard_degree : work.ranks;
}

// As the engine: where one rank holds everything nothing is sharded, unless weights live elsewhere.
ShardPlan effective_plan(const MemoryWork& work) {
  return sharing_ranks(work) == 1 && !work.parameters_in_store ? ShardPlan::for_stage(0) : work.engine.plan;
}

struct GroupBytes {
  std::int64_t all, own;  // elements
  bool trainable;
};

class Planner {
 public:
  Planner(const Model& model, const MemoryWork& work)
      : work_(work), plan_(effective_plan(work)), precision_(work.engine.precision) {
    Chain chain;
    for (const auto& unit : model.units) chain.push_back(unit.get());
    const std::vector<GroupSpec> specs = plan_groups(chain);
    std::vector<FlatLayout> layouts;
    for (const GroupSpec& spec : specs)
      layouts.emplace_back(specs_of(chain, spec), sharing_ranks(work), quantized(spec, chain) ? nf4_block : 32);
    for (std::size_t g = 0; g < specs.size(); ++g) add_group(specs[g], layouts[g], quantized(specs[g], chain));
    const SlotSizes slots =
        slot_sizes(chain, specs, layouts,
                   {bytes_of(precision_.compute), work.engine.keep_frozen, work.engine.overlap,
                    work.engine.quantize_frozen, sharded(plan_.parameters), work.engine.quantize_scales});
    if (sharded(plan_.parameters) || work.engine.quantize_frozen) bytes_.gather_slots = sum(slots.gather);
    if (sharded(plan_.gradients)) bytes_.reduce_slots = sum(slots.reduce);
    bytes_.sums = sums();
    add_disk_buffers();
    bytes_.save += largest_export_;
    bytes_.load = load_chunk_bytes + largest_scales_;
    ActivationWork activations = work.activations;
    activations.compute = precision_.compute;
    activations.on_device = work.on_device;
    activations.recompute_every = work.engine.recompute_every;
    activations.recompute_attention = work.engine.recompute_attention;
    bytes_.activations = plan_activations(model, activations);
    bytes_.batch = 2 * 8 * activations.batch * activations.seq_len;
    bytes_.checkpoint = checkpoint_bytes(trained_, work.ranks, bytes_of(precision_.master));
  }

  const MemoryPlan& bytes() const { return bytes_; }

 private:
  static bool sharded(Placement placement) { return placement == Placement::sharded; }

  bool quantized(const GroupSpec& spec, const Chain& chain) const {
    return work_.engine.quantize_frozen && quantizes(spec, int(chain.size()));
  }

  void add_group(const GroupSpec& spec, const FlatLayout& layout, bool quantized) {
    const std::int64_t all = layout.numel(), shard = layout.shard_numel();
    const bool weights_sharded = shards_weights(spec, plan_, work_.engine.keep_frozen);
    std::int64_t weights = (weights_sharded ? shard : all) * bytes_of(precision_.compute);
    if (quantized) {
      const FrozenCodec codec(layout, weights_sharded ? layout.shards() : 1,
                              {precision_.compute, work_.engine.quantize_scales});
      weights = weights_sharded ? codec.shard_bytes() : codec.all_bytes();
      if (codec.quantizes_scales()) largest_scales_ = std::max(largest_scales_, all / nf4_block * 4);
    }
    const bool weights_elsewhere = weights_sharded && work_.parameters_in_store;
    if (weights_sharded && work_.parameters_on_disk) {
      bytes_.disk += round_up(weights, DiskFile::block);
      largest_stored_ = std::max(largest_stored_, weights);
    } else if (weights_elsewhere && work_.on_device) {
      bytes_.pinned += weights;
    } else {
      bytes_.parameters += weights;
    }
    const std::int64_t own = sharded(plan_.optimizer) ? shard : all;
    largest_export_ = std::max(largest_export_, export_bytes(spec.trainable, own, all));
    if (!spec.trainable) return;
    trained_.push_back(layout);
    bytes_.gradients += (sharded(plan_.gradients) ? shard : all) * bytes_of(precision_.gradient);
    largest_sum_ =
        std::max(largest_sum_, all * bytes_of(sharded(plan_.gradients) ? precision_.compute : precision_.gradient));
    largest_shard_ = std::max(largest_shard_, shard * bytes_of(precision_.gradient));
    const std::int64_t states = (precision_.weights_are_master() ? 2 : 3) * bytes_of(precision_.master);
    if (work_.optimizer_on_disk) {
      bytes_.disk += std::max(round_up(own, DiskFile::block), DiskFile::block) * states;
    } else {
      (through_host() ? bytes_.host : bytes_.optimizer) += own * states;
    }
    if (through_host())
      bytes_.pinned += own * (bytes_of(precision_.gradient) + (weights_elsewhere ? 0 : bytes_of(precision_.compute)));
  }

  // In a piece for each communicator that sums; between nodes they travel in the type of the sums, twice as wide as
  // bf16.
  std::int64_t sums() const {
    if (!work_.on_device || work_.ranks == 1) return 0;
    const auto parts = [](std::int64_t bytes) { return std::min(2 * bytes, sum_piece_bytes); };
    const bool replicas =
        sharing_ranks(work_) < work_.ranks && plan_.stage() > 0;  // who sum the shards that the others have summed
    if (!replicas) return parts(largest_sum_);
    return parts(largest_shard_) + (sharing_ranks(work_) > 1 ? parts(largest_sum_) : 0);
  }

  bool through_host() const { return work_.on_device && work_.optimizer_in_store; }

  // A group is written from one flat vector of all ranks' parts, beside the own part where it is copied from the
  // master.
  std::int64_t export_bytes(bool trainable, std::int64_t own, std::int64_t all) const {
    const bool copied = trainable && !precision_.weights_are_master();
    const std::int64_t element = bytes_of(copied ? precision_.master : precision_.compute);
    return ((copied ? own : 0) + (own < all ? all : 0)) * element;
  }

  void add_disk_buffers() {
    const DiskTierOptions tier;
    if (work_.optimizer_on_disk)
      (work_.on_device ? bytes_.host : bytes_.optimizer) += tier.buffers * std::int64_t(tier.chunk_bytes);
    if (work_.parameters_on_disk && sharded(plan_.parameters))
      (work_.on_device ? bytes_.host : bytes_.parameters) +=
          DiskShardOptions().slots * round_up(largest_stored_, DiskFile::block);
  }

  const MemoryWork& work_;
  ShardPlan plan_;
  Precision precision_;
  MemoryPlan bytes_;
  std::vector<FlatLayout> trained_;
  std::int64_t largest_stored_ = 0, largest_export_ = 0, largest_scales_ = 0, largest_sum_ = 0, largest_shard_ = 0;
};

}  // namespace

std::int64_t MemoryPlan::peak() const { return std::max({training_peak(), at_rest() + load, at_rest() + save}); }

MemoryPlan plan_memory(const Model& model, const MemoryWork& work) { return Planner(model, work).bytes(); }

MemoryWork memory_work_of(const Config& config, const BatchArithmetic& batch, int threads) {
  MemoryWork work;
  work.engine = engine_options_of(config, batch);
  work.optimizer_on_disk = config.offload.optimizer == "nvme";
  work.parameters_on_disk = config.offload.parameters == "nvme";
  work.parameters_in_store = config.offload.parameters != "none";
  work.optimizer_in_store = config.offload.optimizer != "none";
  work.ranks = batch.ranks;
  work.activations.batch = batch.local_batch_size;
  work.activations.seq_len = config.training.seq_len;
  work.activations.threads = threads;
  work.activations.packed = config.data.packing;
  for (const std::string& file : config.data.train)
    if (data_kind(file) == "jsonl") work.activations.masked_targets = true;
  return work;
}

PaperBytes paper_bytes(double trained, double frozen_bytes, const EngineOptions& engine, int ranks) {
  const auto share = [&](Placement placement, double bytes) {
    return bytes / (placement == Placement::sharded ? ranks : 1);
  };
  const Precision& precision = engine.precision;
  const double states = double(bytes_of(precision.master)) * (precision.weights_are_master() ? 2 : 3);
  const double frozen = engine.keep_frozen ? frozen_bytes : share(engine.plan.parameters, frozen_bytes);
  return {share(engine.plan.parameters, trained * double(bytes_of(precision.compute))) + frozen,
          share(engine.plan.gradients, trained * double(bytes_of(precision.gradient))),
          share(engine.plan.optimizer, trained * states)};
}

double frozen_bytes(const Model& model, const EngineOptions& engine) {
  Chain chain;
  for (const auto& unit : model.units) chain.push_back(unit.get());
  double bytes = 0;
  for (const GroupSpec& spec : plan_groups(chain)) {
    if (spec.trainable) continue;
    const FlatLayout layout(specs_of(chain, spec), 1, nf4_block);
    const bool quantized = engine.quantize_frozen && quantizes(spec, int(chain.size()));
    bytes += quantized ? double(FrozenCodec(layout, 1, {engine.precision.compute, engine.quantize_scales}).all_bytes())
                       : double(layout.numel()) * double(bytes_of(engine.precision.compute));
  }
  return bytes;
}

}  // namespace zero

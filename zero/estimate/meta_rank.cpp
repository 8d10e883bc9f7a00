#include "zero/estimate/meta_rank.h"

#include <ATen/ATen.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "comm/fake/meta_communicator.h"
#include "offload/disk/disk_shard_store.h"
#include "offload/disk/disk_tier.h"
#include "zero/core/states/matrix_exchange.h"

namespace zero {
namespace {

/// A store that only counts bytes.
class NoStates final : public StateStore {
 public:
  NoStates(std::int64_t elements, const std::vector<StateSpec>& states) : StateStore(elements, states) {}
  void for_each_chunk(StateAccess, const std::function<void(const StateChunk&)>&) override {}
};

class NoShards final : public ShardStore {
 public:
  explicit NoShards(const std::vector<std::int64_t>& bytes) : ShardStore(bytes) {}
  void* acquire(int) override { return nullptr; }
  void release(int, bool) override {}
};

}  // namespace

MetaRank::MetaRank(const Chain& chain, EngineOptions options, const RankSetting& setting) : chain_(chain) {
  options.device = at::kMeta;
  options.offload = policy_of(setting);
  const int rank = setting.mesh.rank_at(0, MeshAxis::pipeline, setting.stage);
  communicator_ = std::make_unique<MetaCommunicator>(setting.mesh.ranks(), &largest_sum_, rank);
  mesh_.emplace(*communicator_, setting.mesh);
  engine_ = std::make_unique<Engine>(chain, *mesh_, options);
}

MetaRank::~MetaRank() {
  for (Unit* unit : chain_) {
    unit->drop_tables();
    for (Parameter& parameter : unit->parameters()) parameter.tensor.reset();
    for (BorrowedParameter& borrowed : unit->borrowed()) borrowed.tensor.reset();
  }
}

OffloadPolicy MetaRank::policy_of(const RankSetting& setting) {
  OffloadPolicy policy;
  if (setting.optimizer_on_disk || (setting.on_device && setting.optimizer_in_store)) {
    const bool on_disk = setting.optimizer_on_disk;
    if (on_disk) offloaded_.optimizer = DiskTierOptions().memory_bytes();
    policy.optimizer = [this, on_disk](const std::string&, std::int64_t elements,
                                       const std::vector<StateSpec>& states) {
      if (on_disk)
        offloaded_.disk += disk_state_bytes(DiskTierOptions(), elements, states);
      else
        offloaded_.optimizer += state_bytes(states, elements);
      return std::make_unique<NoStates>(elements, states);
    };
  }
  if (setting.parameters_in_store)
    policy.weights = [this, on_disk = setting.parameters_on_disk](const std::vector<std::int64_t>& bytes) {
      if (on_disk) {
        const DiskShardBytes found = disk_shard_bytes(bytes, {});
        offloaded_.disk += found.file;
        offloaded_.weights += found.memory;
      } else {
        for (const std::int64_t size : bytes) offloaded_.weights += size;
      }
      return std::make_unique<NoShards>(bytes);
    };
  return policy;
}

std::int64_t MetaRank::largest_replica_sum() const {
  std::int64_t most = 0;
  if (mesh_->size(engine_->replica_axes()) == 1) return most;
  for (const auto& group : engine_->groups())
    if (group->is_here() && group->spec().trainable)
      most = std::max(most, group->own().numel * std::int64_t(c10::elementSize(engine_->options().precision.gradient)));
  return most;
}

std::int64_t MetaRank::whole_matrices() {
  const at::NoGradGuard no_grad;
  const std::vector<ParameterGroup*> trained = engine_->units().trained();
  const StatesOptions& options = engine_->options();
  const ExchangeRanks ranks = engine_->exchange_ranks();
  std::int64_t most = 0;
  for (int i = 0; i < engine_->optimizers().size(); ++i) {
    const Optimizer& optimizer = engine_->optimizers()[i];
    if (!optimizer.transforms_matrices()) continue;
    std::map<std::vector<std::int64_t>, std::int64_t> known;
    most = std::max(most, transform_bytes(optimizer, trained, ranks, [&](const std::vector<std::int64_t>& shape) {
                      const auto [place, is_new] = known.try_emplace(shape);
                      if (!is_new) return place->second;
                      const at::Tensor matrix = at::empty(
                          shape, at::TensorOptions().dtype(options.precision.gradient).device(options.device));
                      const std::size_t before = trace().moment();
                      optimizer.transform(matrix);
                      return place->second = trace().peak_since(before);
                    }));
  }
  return most;
}

}  // namespace zero

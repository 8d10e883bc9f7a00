#pragma once
// MetaRank: one rank of a run, with its engine and all that the engine allocates, on LibTorch's Meta device: a run that
// computes nothing, talks to nobody and holds no memory, so that what the real one holds follows from the same code.
#include <memory>
#include <optional>

#include "comm/mesh/mesh.h"
#include "zero/core/engine.h"
#include "zero/estimate/meta_allocator.h"

namespace zero {

/// Where states live, and how the ranks share them.
struct RankSetting {
  MeshShape mesh;
  bool optimizer_on_disk = false;
  bool parameters_on_disk = false;
  bool parameters_in_store = false;  // weights' shards have a store of their own, in memory or on disk
  bool optimizer_in_store = false;   // the same of optimizer states
  bool on_device = false;  // a GPU computes: offloaded states are on the host, reached through page-locked buffers
};

/// Bytes of offloaded states, which are not tensors of the engine: in memory between steps, and on disk.
struct OffloadedBytes {
  std::int64_t weights = 0, optimizer = 0;  // in memory, with a disk tier's buffers
  std::int64_t disk = 0;
};

class MetaRank {
 public:
  /// `options` of the run; where it computes and its offload policy are replaced. The chain's parameters have no tensors when
  /// the rank ends.
  MetaRank(const Chain& chain, EngineOptions options, const RankSetting& setting);
  ~MetaRank();

  Engine& engine() { return *engine_; }
  const AllocationTrace& trace() const { return allocator_.trace(); }
  std::int64_t live(MemoryCategory category) const { return trace().live(category); }
  const OffloadedBytes& offloaded() const { return offloaded_; }
  /// Bytes of the largest vector that all ranks, or those that share one copy of the states, sum; 0 when nobody else
  /// does.
  std::int64_t largest_sum() const { return largest_sum_; }
  /// The same of the ranks that hold the same shard.
  std::int64_t largest_replica_sum() const;
  /// What the fullest rank takes in a step of the optimizers for matrices that are transformed whole, beside gradients.
  std::int64_t whole_matrices();

 private:
  OffloadPolicy policy_of(const RankSetting& setting);

  Chain chain_;
  MetaAllocator allocator_;
  OffloadedBytes offloaded_;
  std::int64_t largest_sum_ = 0;
  std::unique_ptr<Communicator> communicator_;
  std::optional<Mesh> mesh_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace zero

#pragma once
// MetaRank: one rank of a run, with its engine and all its allocations, on LibTorch's Meta device. It computes nothing,
// does not communicate and holds no memory. It runs the code of a real rank, and so shows how much memory that rank
// would use.
#include <memory>
#include <optional>

#include "comm/mesh/mesh.h"
#include "zero/core/engine.h"
#include "zero/estimate/meta_allocator.h"

namespace zero {

/// The places of states, and how the ranks share them.
struct RankSetting {
  MeshShape mesh;
  int stage = 0;  // index along the pipeline axis; the rank is the first of this stage
  bool optimizer_on_disk = false;
  bool parameters_on_disk = false;
  bool parameters_in_store = false;  // shards of weights are in a store of their own, in memory or on disk
  bool optimizer_in_store = false;   // likewise for optimizer states
  bool on_device = false;  // a GPU computes; offloaded states are in host memory, copied through pinned buffers
};

/// Bytes of offloaded states, in memory between steps and on disk. They are not tensors of the engine.
struct OffloadedBytes {
  std::int64_t weights = 0, optimizer = 0;  // in memory, including disk buffers
  std::int64_t disk = 0;
};

class MetaRank {
 public:
  /// `options`: the run's options, but with another device and offload policy. The chain's parameters have no tensors
  /// after the rank is destroyed.
  MetaRank(const Chain& chain, EngineOptions options, const RankSetting& setting);
  ~MetaRank();

  Engine& engine() { return *engine_; }
  const AllocationTrace& trace() const { return allocator_.trace(); }
  std::int64_t live(MemoryCategory category) const { return trace().live(category); }
  const OffloadedBytes& offloaded() const { return offloaded_; }
  /// Bytes of the largest vector reduced over all ranks, or over the ranks that share one copy of the states; 0 for a
  /// single rank.
  std::int64_t largest_sum() const { return largest_sum_; }
  /// The same for reductions over the ranks that hold the same shard.
  std::int64_t largest_replica_sum() const;
  /// Returns the bytes that the rank with the most work needs in an optimizer step on whole matrices (Muon), without
  /// gradients.
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

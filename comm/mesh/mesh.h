#pragma once
// Mesh: the ranks of a job on a grid of named axes, and the groups of ranks that differ along some of them. It is
// PyTorch's DeviceMesh, with axes of fixed names. Code that needs a part of the batch, a sum, a norm or a shard names
// axes and never counts ranks itself. A new axis then needs no change there.
#include <map>
#include <memory>

#include "comm/communicator.h"
#include "comm/mesh/mesh_shape.h"

namespace zero {

class Mesh {
 public:
  /// `ranks` takes tensors of the computing device, `host` those of the host between the same ranks (null: `ranks`
  /// does). Both outlive the mesh. Throws InputError unless the shape has as many places as there are ranks.
  Mesh(Communicator& ranks, const MeshShape& shape, Communicator* host = nullptr);
  /// Puts all ranks along `shard`.
  explicit Mesh(Communicator& ranks) : Mesh(ranks, {.shard = ranks.size()}) {}
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  const MeshShape& shape() const { return shape_; }
  int size(AxisSet along) const { return shape_.size(along); }
  /// This rank's place among the ranks that differ from it only along these axes.
  int index(AxisSet along) const { return shape_.index(ranks_.rank(), along); }

  /// All ranks.
  Communicator& ranks() { return ranks_; }
  Communicator& host() { return host_; }
  /// The ranks that differ from this one only along these axes, in the order of their places. The first call for a set
  /// of axes is collective over all ranks of the mesh. It creates nothing if the group has one rank or all ranks. Sets
  /// may share a group, and then their calls form one sequence.
  Communicator& along(AxisSet axes);
  /// Another communicator of the same ranks, whose calls may run concurrently with those of the first. Null for a group
  /// of one. Collective.
  std::unique_ptr<Communicator> another(AxisSet axes);

  /// Device bytes of the ranks' communicator and those of along() that LibTorch's allocators do not count.
  std::int64_t own_device_bytes() const;

 private:
  std::unique_ptr<Communicator> split(AxisSet axes);

  Communicator& ranks_;
  Communicator& host_;
  MeshShape shape_;
  std::map<AxisSet, std::unique_ptr<Communicator>> groups_;
};

}  // namespace zero

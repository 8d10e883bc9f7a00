#pragma once
// Mesh: the ranks of a job on a grid of named axes, and the groups of ranks that differ along some of them. It
// corresponds to PyTorch's DeviceMesh, with fixed axis names. Code that needs a part of the batch, a sum, a norm or a
// shard names axes and never counts ranks itself. A new axis therefore does not change that code.
#include <map>
#include <memory>

#include "comm/communicator.h"
#include "comm/mesh/mesh_shape.h"

namespace zero {

class Mesh {
 public:
  /// `ranks` carries tensors of the computing device, `host` those in host memory. Both have the same ranks. If `host`
  /// is null, `ranks` carries both. Both must outlive the mesh. Throws InputError unless the shape has as many places
  /// as there are ranks.
  Mesh(Communicator& ranks, const MeshShape& shape, Communicator* host = nullptr);
  /// Puts all ranks along the `shard` axis.
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
  /// The group of ranks that differ from this one only along these axes, in the order of their places. The first call
  /// for a set of axes is collective over all ranks of the mesh. No communicator is created for a group of one rank or
  /// of all ranks. Two sets of axes may share a communicator. Their calls then form one sequence.
  Communicator& along(AxisSet axes);
  /// Makes another communicator of the ranks of along(axes), whose calls may run concurrently with that one's. Returns
  /// null for a group of one. Collective.
  std::unique_ptr<Communicator> another(AxisSet axes);

  /// The bytes of device memory that ranks() and all groups of along() hold and that LibTorch's allocators do not
  /// count.
  std::int64_t own_device_bytes() const;

 private:
  std::unique_ptr<Communicator> split(AxisSet axes);

  Communicator& ranks_;
  Communicator& host_;
  MeshShape shape_;
  std::map<AxisSet, std::unique_ptr<Communicator>> groups_;
};

}  // namespace zero

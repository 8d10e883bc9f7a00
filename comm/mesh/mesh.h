#pragma once
// Mesh: the ranks of a job on a grid of named axes, and the groups of ranks that differ along some of them (PyTorch's
// DeviceMesh, with axes of fixed names). Who asks for a part of the batch, a sum, a norm or a shard names axes and never
// counts ranks itself, so that a new axis finds everybody ready for it.
#include <map>
#include <memory>

#include "comm/communicator.h"
#include "comm/mesh/mesh_shape.h"

namespace zero {

class Mesh {
 public:
  /// `ranks` takes the tensors of the device that computes, `host` those of the host between the same ranks (null: the
  /// same communicator does). Both outlive the mesh. Throws InputError when the shape has not as many places as there
  /// are ranks.
  Mesh(Communicator& ranks, const MeshShape& shape, Communicator* host = nullptr);
  /// All ranks along `shard`.
  explicit Mesh(Communicator& ranks) : Mesh(ranks, {.shard = ranks.size()}) {}
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  const MeshShape& shape() const { return shape_; }
  int size(AxisSet along) const { return shape_.size(along); }
  /// This rank's place among those that differ from it along these axes alone.
  int index(AxisSet along) const { return shape_.index(ranks_.rank(), along); }

  /// All ranks.
  Communicator& ranks() { return ranks_; }
  Communicator& host() { return host_; }
  /// The ranks that differ from this one along these axes alone, in the order of their places. The first call for a set
  /// of axes is collective over all ranks of the mesh; where nobody else is among them, or all are, it makes nothing. Sets
  /// may share a group, so that their calls are one sequence.
  Communicator& along(AxisSet axes);
  /// One more communicator of the same ranks, whose calls may run beside those of the first; null where nobody else is
  /// among them. Collective.
  std::unique_ptr<Communicator> another(AxisSet axes);

  /// Bytes of the device that the ranks' communicator and those of along() hold, and no allocator of LibTorch counts.
  std::int64_t own_device_bytes() const;

 private:
  std::unique_ptr<Communicator> split(AxisSet axes);

  Communicator& ranks_;
  Communicator& host_;
  MeshShape shape_;
  std::map<AxisSet, std::unique_ptr<Communicator>> groups_;
};

}  // namespace zero

#include "comm/mesh/mesh.h"

#include "base/error.h"
#include "base/log.h"
#include "comm/self_communicator.h"

namespace zero {

Mesh::Mesh(Communicator& ranks, const MeshShape& shape, Communicator* host)
    : ranks_(ranks), host_(host ? *host : ranks), shape_(shape) {
  for (int a = 0; a < mesh_axes; ++a)
    if (shape.size(AxisSet(MeshAxis(a))) < 1)
      throw InputError(text("a mesh has at least one rank along ", name_of(MeshAxis(a))));
  if (shape.ranks() != ranks.size())
    throw InputError(
        text("a mesh of ", shape.describe(), " has ", shape.ranks(), " places, and the job ", ranks.size()));
  ZERO_CHECK(host_.size() == ranks.size() && host_.rank() == ranks.rank(), "the host's ranks are the device's");
}

std::unique_ptr<Communicator> Mesh::split(AxisSet axes) {
  std::vector<int> members;
  for (int i = 0; i < size(axes); ++i) members.push_back(shape_.rank_at(ranks_.rank(), axes, i));
  return ranks_.split(members);
}

// Sets that differ only in axes of size one share a group.
Communicator& Mesh::along(AxisSet axes) {
  if (size(axes) == ranks_.size()) return ranks_;
  AxisSet apart;
  for (int a = 0; a < mesh_axes; ++a)
    if (axes.has(MeshAxis(a)) && size(MeshAxis(a)) > 1) apart = apart | MeshAxis(a);
  const auto known = groups_.find(apart);
  if (known != groups_.end()) return *known->second;
  std::unique_ptr<Communicator> group;
  if (size(apart) == 1)
    group = std::make_unique<SelfCommunicator>(ranks_);
  else
    group = split(apart);
  return *groups_.emplace(apart, std::move(group)).first->second;
}

std::unique_ptr<Communicator> Mesh::another(AxisSet axes) { return size(axes) == 1 ? nullptr : split(axes); }

std::int64_t Mesh::own_device_bytes() const {
  std::int64_t bytes = ranks_.memory().own_device_bytes();
  for (const auto& [axes, group] : groups_) bytes += group->memory().own_device_bytes();
  return bytes;
}

}  // namespace zero

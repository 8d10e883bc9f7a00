#include "comm/mesh/mesh_shape.h"

#include <array>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

std::array<int, mesh_axes> sizes_of(const MeshShape& shape) {
  return {shape.pipeline, shape.replicate, shape.shard, shape.context, shape.tensor};
}

}  // namespace

const char* name_of(MeshAxis axis) {
  static const char* const names[] = {"pipeline", "replicate", "shard", "context", "tensor"};
  return names[int(axis)];
}

int MeshShape::size(AxisSet along) const {
  const auto sizes = sizes_of(*this);
  int product = 1;
  for (int a = 0; a < mesh_axes; ++a)
    if (along.has(MeshAxis(a))) product *= sizes[std::size_t(a)];
  return product;
}

int MeshShape::index(int rank, AxisSet along) const {
  ZERO_CHECK(rank >= 0 && rank < ranks(), text("rank ", rank, " in a mesh of ", ranks()));
  const auto sizes = sizes_of(*this);
  int index = 0, stride = 1;  // of the axis within `along`
  for (int a = mesh_axes - 1; a >= 0; --a) {
    const int size = sizes[std::size_t(a)], coordinate = rank % size;
    rank /= size;
    if (!along.has(MeshAxis(a))) continue;
    index += coordinate * stride;
    stride *= size;
  }
  return index;
}

int MeshShape::rank_at(int rank, AxisSet along, int index) const {
  ZERO_CHECK(index >= 0 && index < size(along), text("place ", index, " of ", size(along)));
  const auto sizes = sizes_of(*this);
  int found = 0, stride = 1;
  for (int a = mesh_axes - 1; a >= 0; --a) {
    const int size = sizes[std::size_t(a)];
    const bool moves = along.has(MeshAxis(a));
    found += (moves ? index : rank) % size * stride;
    stride *= size;
    rank /= size;
    if (moves) index /= size;
  }
  return found;
}

MeshShape MeshShape::only(AxisSet along) const {
  const auto kept = [&](MeshAxis axis) { return size(AxisSet(axis)) * along.has(axis) + !along.has(axis); };
  return {kept(MeshAxis::pipeline), kept(MeshAxis::replicate), kept(MeshAxis::shard), kept(MeshAxis::context),
          kept(MeshAxis::tensor)};
}

std::string MeshShape::describe() const {
  std::string told;
  const auto sizes = sizes_of(*this);
  for (int a = 0; a < mesh_axes; ++a)
    if (sizes[std::size_t(a)] > 1)
      told += text(told.empty() ? "" : " x ", sizes[std::size_t(a)], " ", name_of(MeshAxis(a)));
  return told.empty() ? "1 rank" : told;
}

}  // namespace zero

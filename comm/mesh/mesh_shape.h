#pragma once
// MeshShape: the ranks of a job as a grid of named axes. It computes places and does not communicate.
#include <cstdint>
#include <initializer_list>
#include <string>

namespace zero {

/// In rank order, slowest axis first: ranks that differ only along `tensor` have adjacent numbers and share a node.
enum class MeshAxis : std::uint8_t {
  pipeline,   // other units of the model
  replicate,  // another copy of the states, and other rows of the batch
  shard,      // another part of the states, and other rows
  context,    // another part of the states, and other tokens of the same rows
  tensor,     // other slices of the same tensors, and the same tokens
};
inline constexpr int mesh_axes = 5;
const char* name_of(MeshAxis axis);

class AxisSet {
 public:
  constexpr AxisSet() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): an axis is a set of one
  constexpr AxisSet(MeshAxis axis) : bits_(std::uint8_t(1 << int(axis))) {}
  constexpr AxisSet(std::initializer_list<MeshAxis> axes) {
    for (const MeshAxis axis : axes) bits_ = std::uint8_t(bits_ | 1 << int(axis));
  }
  constexpr bool has(MeshAxis axis) const { return bits_ >> int(axis) & 1; }
  constexpr AxisSet operator|(AxisSet other) const { return AxisSet(std::uint8_t(bits_ | other.bits_)); }
  /// The axes that are not in the set.
  constexpr AxisSet others() const { return AxisSet(std::uint8_t(~bits_ & ((1 << mesh_axes) - 1))); }
  auto operator<=>(const AxisSet&) const = default;

 private:
  constexpr explicit AxisSet(std::uint8_t bits) : bits_(bits) {}
  std::uint8_t bits_ = 0;
};

/// Sets of axes. Each is named after the things that ranks along it divide or copy.
namespace axes {
inline constexpr AxisSet all = AxisSet().others();
inline constexpr AxisSet rows{MeshAxis::replicate, MeshAxis::shard};                       // of a batch
inline constexpr AxisSet tokens{MeshAxis::replicate, MeshAxis::shard, MeshAxis::context};  // of a batch
inline constexpr AxisSet states{MeshAxis::shard, MeshAxis::context};                       // of one copy of them
inline constexpr AxisSet replicas{MeshAxis::replicate};                                    // copies of the same states
inline constexpr AxisSet model{MeshAxis::pipeline, MeshAxis::tensor};                      // parts of the model
}  // namespace axes

struct MeshShape {
  int pipeline = 1, replicate = 1, shard = 1, context = 1, tensor = 1;

  /// The shape of data-parallel ranks. Every `shard_degree` ranks share one copy of the states; 0 means all ranks.
  /// `ranks` must be a multiple of `shard_degree`.
  static MeshShape hybrid(int ranks, int shard_degree) {
    return {.replicate = shard_degree ? ranks / shard_degree : 1, .shard = shard_degree ? shard_degree : ranks};
  }

  int ranks() const { return size(axes::all); }
  /// The number of ranks that differ only along these axes. A rank counts itself.
  int size(AxisSet along) const;
  /// The place of `rank` among the ranks that differ from it only along these axes, in rank order.
  int index(int rank, AxisSet along) const;
  /// The rank at place `index` among the ranks that differ from `rank` only along these axes.
  int rank_at(int rank, AxisSet along, int index) const;
  /// The same grid reduced to these axes: all others have size 1.
  MeshShape only(AxisSet along) const;
  /// "2 replicate x 4 shard". Axes of size 1 are omitted.
  std::string describe() const;

  bool operator==(const MeshShape&) const = default;
};

}  // namespace zero

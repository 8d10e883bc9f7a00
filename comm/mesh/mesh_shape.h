#pragma once
// MeshShape: the ranks of a job as a grid of named axes. It only computes places, and does not communicate.
#include <cstdint>
#include <initializer_list>
#include <string>

namespace zero {

/// In the order of ranks, the slowest first: ranks that differ only in `tensor` are neighbours, and share a node.
enum class MeshAxis : std::uint8_t {
  pipeline,   // other units of the model
  replicate,  // another copy of the states, and other rows
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

/// The axes along which ranks differ, by purpose.
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

  /// Data-parallel ranks. Each `shard_degree` of them share one copy of the states; 0: all do. It must divide the
  /// ranks.
  static MeshShape hybrid(int ranks, int shard_degree) {
    return {.replicate = shard_degree ? ranks / shard_degree : 1, .shard = shard_degree ? shard_degree : ranks};
  }

  int ranks() const { return size(axes::all); }
  /// The number of ranks that differ only in these axes, including a rank itself.
  int size(AxisSet along) const;
  /// The place of a rank among those, counted in the order of ranks.
  int index(int rank, AxisSet along) const;
  /// The rank at that place among those that include `rank`.
  int rank_at(int rank, AxisSet along, int index) const;
  /// The same grid reduced to these axes. The others have one rank.
  MeshShape only(AxisSet along) const;
  /// "2 replicate x 4 shard"; axes of one rank are left out.
  std::string describe() const;

  bool operator==(const MeshShape&) const = default;
};

}  // namespace zero

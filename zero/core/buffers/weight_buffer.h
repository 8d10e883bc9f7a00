#pragma once
// WeightBuffer: the weights of a group. Where they are divided, or written in a format of their own, the whole vector
// that leaves are views of comes when it is needed and goes afterwards.
#include <functional>
#include <memory>

#include "zero/core/buffers/flat_storage.h"
#include "zero/core/buffers/sharded_buffer.h"
#include "zero/core/buffers/travel.h"
#include "zero/core/buffers/wire_format.h"

namespace zero {

/// Sharded: only what is held at rest. Gathering: the whole vector has memory, not yet its values. Unsharded: leaves
/// are usable.
enum class ShardedState : std::uint8_t { sharded, gathering, unsharded };
const char* name_of(ShardedState state);

class WeightBuffer {
 public:
  struct Options {
    std::int64_t numel = 0;            // of the whole vector
    at::ScalarType type = at::kFloat;  // as modules see it
    at::Device device = at::kCPU;
    std::shared_ptr<const WireFormat> format;
    CallTag tag;  // whose weights they are
    bool watched = false;
  };
  WeightBuffer(ShardedBuffer rest, const Options& options, const Travel& travel);

  const WireFormat& format() const { return *options_.format; }
  bool is_sharded() const { return rest_.is_sharded(); }
  bool comes_and_goes() const { return is_sharded() || !format().is_plain(); }
  /// `make` makes views of the whole vector, which has memory meanwhile.
  void make_views(const std::function<void(const at::Tensor& flat)>& make);
  /// Usable while unsharded.
  at::Tensor whole() const;
  /// Of what was made to be watched: owner_of() finds `owner` in every view (zero/core/buffers/flat_storage.h).
  void watch(const void* owner) { full_.watch(owner); }
  /// Before the end, of what was watched and is not open: leaves that stay behind have no memory, and that owner.
  void abandon(const void* owner);
  /// True if unshard() finds a buffer, or needs none.
  bool has_room() const;

  /// What this rank holds, and its own part of that. `changes` waits until what is on its way to others has been read.
  ShardLease at_rest(bool changes) const;
  at::Tensor own_of(const at::Tensor& at_rest) const { return rest_.own_of(at_rest); }
  /// Begins to bring what this rank holds to it, where it lives elsewhere.
  void fetch() const { rest_.fetch(); }

  /// Starts the all-gather where weights come and go, if it has not been started. unshard() or cancel_prefetch() must
  /// follow.
  void prefetch(Phase phase);
  /// Makes the leaves usable: a gather where weights are divided, nothing elsewhere. Calls nest.
  void unshard(Phase phase);
  void reshard();
  /// Gives up a prefetch that nobody came for.
  void cancel_prefetch();
  /// Begins to make everybody's new weights known where each holds all: beside what the current stream does next.
  /// unshard() and whatever writes weights wait for it. Collective.
  void gather_updated();

 private:
  CallTag tag(Phase phase) const { return {phase, options_.tag.unit, options_.tag.group}; }
  void move_to(ShardedState next);
  void attach();
  void detach();
  void decode();
  void await_updated() const;

  ShardedBuffer rest_;
  Options options_;
  Travel travel_;
  FlatStorage full_;  // of what comes and goes, or is watched
  ShardedState state_ = ShardedState::sharded;
  int users_ = 0;
  int buffer_ = -1, wire_buffer_ = -1;  // of the whole vector, and of what is gathered to be decoded
  Event updated_;                       // the end of the last gather_updated(), until somebody has waited for it
  mutable bool gathers_updated_ = false;
};

}  // namespace zero

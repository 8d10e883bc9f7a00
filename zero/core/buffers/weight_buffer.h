#pragma once
// WeightBuffer: the weights of a group. Leaves are views of the full vector. If weights are sharded or have a format of
// their own, the vector has memory only while it is needed.
#include <functional>
#include <memory>

#include "zero/core/buffers/flat_storage.h"
#include "zero/core/buffers/sharded_buffer.h"
#include "zero/core/buffers/travel.h"
#include "zero/core/buffers/wire_format.h"

namespace zero {

/// Sharded: only the memory at rest exists. Gathering: the full vector has memory, but its values have not arrived.
/// Unsharded: leaves are usable.
enum class ShardedState : std::uint8_t { sharded, gathering, unsharded };
const char* name_of(ShardedState state);

class WeightBuffer {
 public:
  struct Options {
    std::int64_t numel = 0;            // of the whole vector
    at::ScalarType type = at::kFloat;  // type that modules see
    at::Device device = at::kCPU;
    std::shared_ptr<const WireFormat> format;
    CallTag tag;  // names the group
    bool watched = false;
  };
  WeightBuffer(ShardedBuffer rest, const Options& options, const Travel& travel);

  const WireFormat& format() const { return *options_.format; }
  bool is_sharded() const { return rest_.is_sharded(); }
  bool comes_and_goes() const { return is_sharded() || !format().is_plain(); }
  /// Calls `make`, which makes views of the full vector. The vector has memory during the call.
  void make_views(const std::function<void(const at::Tensor& flat)>& make);
  /// The full vector, usable while unsharded.
  at::Tensor whole() const;
  /// owner_of() will find `owner` in every view (zero/core/buffers/flat_storage.h). Only for Options::watched.
  void watch(const void* owner) { full_.watch(owner); }
  /// Call it when no group uses a watched buffer any more. Leaves that outlive the buffer then have no memory, and
  /// owner_of() returns `owner` for them.
  void abandon(const void* owner);
  /// Returns true if unshard() will find a buffer or needs none.
  bool has_room() const;

  /// at_rest() returns the memory that this rank holds, and own_of() this rank's own part of it. If `changes` is set,
  /// at_rest() first waits until a gather_updated() in progress has read the memory.
  ShardLease at_rest(bool changes) const;
  at::Tensor own_of(const at::Tensor& at_rest) const { return rest_.own_of(at_rest); }
  /// Starts to bring in the memory that this rank holds, if its home is elsewhere.
  void fetch() const { rest_.fetch(); }

  /// Starts the all-gather of weights that are gathered on use, unless it has started. unshard() or cancel_prefetch()
  /// must follow.
  void prefetch(Phase phase);
  /// Makes the leaves usable: all-gathers sharded weights, and does nothing for resident ones. Calls can be nested.
  void unshard(Phase phase);
  void reshard();
  /// Cancels a prefetch without an unshard().
  void cancel_prefetch();
  /// Starts the all-gather of updated weights, if they are resident and each rank updates its part. The all-gather runs
  /// in parallel with the current stream's next work. unshard() and writers of weights wait for it. Collective.
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
  FlatStorage full_;  // if the weights are gathered on use, or are watched
  ShardedState state_ = ShardedState::sharded;
  int users_ = 0;
  int buffer_ = -1, wire_buffer_ = -1;  // of the full vector; of the gathered bytes that are decoded into it
  Event updated_;                       // end of the last gather_updated(), until it has been waited for
  mutable bool gathers_updated_ = false;
};

}  // namespace zero

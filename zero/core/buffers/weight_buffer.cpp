#include "zero/core/buffers/weight_buffer.h"

#include <ATen/ATen.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {

const char* name_of(ShardedState state) {
  static const char* const names[] = {"sharded", "gathering", "unsharded"};
  return names[int(state)];
}

WeightBuffer::WeightBuffer(ShardedBuffer rest, const Options& options, const Travel& travel)
    : rest_(std::move(rest)), options_(options), travel_(travel), updated_(options.device) {
  if (comes_and_goes() || options_.watched) full_ = FlatStorage(options_.numel, options_.type, options_.device);
  if (comes_and_goes()) return;
  state_ = ShardedState::unsharded;
  if (options_.watched) full_.attach(whole().data_ptr());
}

void WeightBuffer::abandon(const void* owner) {
  if (full_.attached()) full_.detach();
  full_.watch(owner);
}

bool WeightBuffer::has_room() const {
  return state_ != ShardedState::sharded || travel_.buffers->has_room(full_.bytes());
}

// LibTorch checks the bounds of a view when it is made, so a vector that is gathered on use needs memory for that
// moment.
void WeightBuffer::make_views(const std::function<void(const at::Tensor& flat)>& make) {
  if (!comes_and_goes()) return make(options_.watched ? full_.tensor() : whole());
  attach();
  make(full_.tensor());
  detach();
}

at::Tensor WeightBuffer::whole() const { return comes_and_goes() ? full_.tensor() : at_rest(false).tensor(); }

ShardLease WeightBuffer::at_rest(bool changes) const {
  if (changes) await_updated();
  return rest_.at_rest(changes);
}

void WeightBuffer::move_to(ShardedState next) {
  const bool legal = state_ == ShardedState::sharded     ? next == ShardedState::gathering
                     : state_ == ShardedState::gathering ? next != ShardedState::gathering
                                                         : next == ShardedState::sharded;
  ZERO_CHECK(legal, text("group ", options_.tag.group, " of unit ", options_.tag.unit, " on rank ",
                         rest_.ranks().rank(), " cannot go from ", name_of(state_), " to ", name_of(next)));
  state_ = next;
}

void WeightBuffer::attach() {
  buffer_ = travel_.buffers->acquire(full_.bytes());
  full_.attach(travel_.buffers->memory(buffer_));
}

void WeightBuffer::detach() {
  full_.detach();
  travel_.buffers->release(std::exchange(buffer_, -1));
}

// A gather writes to the memory of the full vector, or to a wire buffer that is decoded into it. The own part is
// written without autograd, which counts writes to a variable.
void WeightBuffer::prefetch(Phase phase) {
  if (!comes_and_goes() || state_ != ShardedState::sharded) return;
  const SideStream::Guard on_stream = travel_.stream->enter();
  attach();
  move_to(ShardedState::gathering);
  if (is_sharded()) {
    const bool plain = format().is_plain();
    if (!plain) wire_buffer_ = travel_.buffers->acquire(format().all_bytes());
    const at::Tensor all =
        travel_.buffers->tensor(plain ? buffer_ : wire_buffer_, format().all_numel(), format().type());
    const at::Tensor place = all.narrow(0, rest_.ranks().rank() * format().rest_numel(), format().rest_numel());
    rest_.gather(plain ? full_.tensor() : all, place, tag(phase));
  }
  travel_.buffers->mark_filled(buffer_);
}

void WeightBuffer::decode() {
  if (wire_buffer_ < 0) return format().decode(at_rest(false).tensor(), full_.tensor());
  format().decode(travel_.buffers->tensor(wire_buffer_, format().all_numel(), format().type()), full_.tensor());
  travel_.buffers->release(std::exchange(wire_buffer_, -1));
}

void WeightBuffer::unshard(Phase phase) {
  await_updated();
  if (!comes_and_goes()) return;
  if (state_ != ShardedState::unsharded) {
    prefetch(phase);
    travel_.buffers->await_filled(buffer_);
    if (!format().is_plain()) decode();
    move_to(ShardedState::unsharded);
  }
  ++users_;
}

void WeightBuffer::reshard() {
  if (!comes_and_goes()) return;
  ZERO_CHECK(users_ > 0,
             text("group ", options_.tag.group, " of unit ", options_.tag.unit, " on rank ", rest_.ranks().rank(),
                  " is resharded more often than unsharded: its user's count of open groups is wrong"));
  if (--users_ > 0) return;
  move_to(ShardedState::sharded);
  detach();
}

void WeightBuffer::cancel_prefetch() {
  if (state_ != ShardedState::gathering) return;
  travel_.buffers->await_filled(buffer_);
  move_to(ShardedState::sharded);
  detach();
  if (wire_buffer_ >= 0) travel_.buffers->release(std::exchange(wire_buffer_, -1));
}

void WeightBuffer::gather_updated() {
  if (is_sharded() || rest_.owns_all()) return;
  travel_.stream->follow_current();
  const SideStream::Guard on_stream = travel_.stream->enter();
  rest_.gather_in_place(tag(Phase::gather_updated));
  updated_.set();
  gathers_updated_ = true;
}

void WeightBuffer::await_updated() const {
  if (std::exchange(gathers_updated_, false)) updated_.wait();
}

}  // namespace zero

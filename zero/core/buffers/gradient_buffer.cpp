#include "zero/core/buffers/gradient_buffer.h"

#include <ATen/ATen.h>

#include <bit>
#include <utility>

namespace zero {

GradientBuffer::GradientBuffer(ShardedBuffer rest, const Options& options, const Travel& travel, Communicator& replicas,
                               std::vector<at::Tensor> rungs)
    : rest_(std::move(rest)), options_(options), travel_(travel), replicas_(&replicas) {
  if (rungs.empty()) return;
  if (rest_.is_sharded()) rungs.insert(rungs.begin(), rest_.at_rest(true).tensor());
  ladder_.emplace(std::move(rungs));
}

at::Tensor GradientBuffer::destination(const std::vector<FlatRange>& used) {
  if (!rest_.is_sharded()) return rest_.at_rest(true).tensor();
  if (buffer_ >= 0) return packed_;
  buffer_ = travel_.buffers->acquire(options_.numel * std::int64_t(c10::elementSize(options_.packed)));
  packed_ = travel_.buffers->tensor(buffer_, options_.numel, options_.packed);
  std::int64_t end = 0;  // the buffer held another group's gradients
  for (const FlatRange& range : used) {
    packed_.narrow(0, end, range.begin - end).zero_();
    end = range.begin + range.numel;
  }
  packed_.narrow(0, end, options_.numel - end).zero_();
  return packed_;
}

bool GradientBuffer::has_room() const {
  return !rest_.is_sharded() || buffer_ >= 0 ||
         travel_.buffers->has_room(options_.numel * std::int64_t(c10::elementSize(options_.packed)));
}

void GradientBuffer::reduce(MicroBatch micro, const std::function<void(const at::Tensor& own)>& done) {
  add(micro.first);
  if (micro.last) conclude(done);
}

void GradientBuffer::add(bool first) {
  if (ladder_) return add_in_order(first);
  if (!rest_.is_sharded()) return;
  travel_.stream->follow_current();
  const SideStream::Guard on_stream = travel_.stream->enter();
  rest_.reduce(packed_, {options_.sum, !first}, tag());
  drop();
}

void GradientBuffer::add_in_order(bool first) {
  if (first) ladder_->clear();
  travel_.stream->follow_current();
  {
    const SideStream::Guard on_stream = travel_.stream->enter();
    const at::Tensor full = rest_.is_sharded() ? packed_ : rest_.at_rest(false).tensor();
    if (std::has_single_bit(unsigned(rest_.ranks().size()))) {
      const at::Tensor place = ladder_->place();
      rest_.ranks().reduce_scatter(place, full, {options_.sum, false}, tag());
      if (replicas_->size() > 1) replicas_->all_reduce(place, {options_.sum, false}, tag());
      ladder_->push();
    } else {
      add_in_turns(full);
    }
    drop();
  }
  if (!rest_.is_sharded()) travel_.stream->join();  // the next micro-batch is packed into the same memory
}

void GradientBuffer::add_in_turns(const at::Tensor& full) {
  const std::int64_t ranks = rest_.ranks().size(), part = options_.numel / ranks;
  const int buffer = travel_.buffers->acquire(std::int64_t(full.nbytes()));
  const at::Tensor parts = travel_.buffers->tensor(buffer, options_.numel, full.scalar_type());
  const std::vector<std::int64_t> counts(std::size_t(ranks), part);
  rest_.ranks().all_to_all(parts, counts, full, counts, tag());
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    ladder_->place().copy_(parts.narrow(0, rank * part, part));
    ladder_->push();
  }
  travel_.buffers->release(buffer);
}

void GradientBuffer::conclude_in_order() {
  const at::Tensor sum = ladder_->conclude();
  if (rest_.is_sharded()) return;  // the sum is there already
  part().copy_(sum);
  if (rest_.owns_all()) rest_.ranks().all_gather_into(rest_.at_rest(true).tensor(), part(), tag());
}

void GradientBuffer::conclude(const std::function<void(const at::Tensor& own)>& done) {
  if (!rest_.is_sharded()) travel_.stream->follow_current();
  const SideStream::Guard on_stream = travel_.stream->enter();
  if (ladder_) {
    conclude_in_order();
  } else {
    if (!rest_.is_sharded()) rest_.reduce(rest_.at_rest(true).tensor(), {options_.sum, false}, tag());
    if (replicas_->size() > 1) replicas_->all_reduce(own(), {options_.sum, false}, tag());
  }
  done(own());
}

void GradientBuffer::drop() {
  packed_.reset();
  if (buffer_ >= 0) travel_.buffers->release(std::exchange(buffer_, -1));
}

at::Tensor GradientBuffer::own() const { return rest_.own_of(rest_.at_rest(false).tensor()); }

at::Tensor GradientBuffer::part() const {
  const at::Tensor rest = rest_.at_rest(false).tensor();
  if (rest_.is_sharded()) return rest;
  const std::int64_t numel = options_.numel / rest_.ranks().size();
  return rest.narrow(0, rest_.ranks().rank() * numel, numel);
}

}  // namespace zero

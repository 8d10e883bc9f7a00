#include "zero/core/states/state_shard.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"

namespace zero {

StateShard::StateShard(const Optimizer& optimizer, StateLayout layout, FlatRange own,
                       const std::vector<StateSpec>& states,
                       const std::function<std::unique_ptr<StateStore>(std::int64_t elements)>& make_store,
                       at::Device device)
    : optimizer_(optimizer),
      layout_(std::move(layout)),
      begin_(layout_.position_of(own.begin)),
      has_master_(!states.empty() && states.front().name == "master"),
      device_(device),
      segments_(layout_.segments(own.begin, own.numel, optimizer.by_tensor())) {
  for (StateSegment& segment : segments_) {
    segment.begin -= begin_;
    segment.flat_begin -= own.begin;
  }
  store_ = make_store(layout_.position_of(own.begin + own.numel) - begin_);
}

void StateShard::for_each_segment(const StateChunk& chunk,
                                  const std::function<void(const StateSegment&)>& visit) const {
  for (const StateSegment& segment : segments_) {
    const std::int64_t begin = std::max(segment.begin, chunk.begin),
                       end = std::min(segment.begin + segment.count, chunk.end), skipped = begin - segment.begin;
    if (begin < end)
      visit({begin, segment.flat_begin + skipped, end - begin, segment.tensor, segment.tensor_begin + skipped});
  }
}

std::vector<at::Tensor> StateShard::view(const StateChunk& chunk, std::int64_t begin, std::int64_t count) const {
  std::vector<at::Tensor> views;
  for (std::size_t s = 0; s < chunk.states.size(); ++s) {
    const StateSpec& spec = store_->states()[s];
    ZERO_CHECK((begin - chunk.begin) % spec.grain == 0, "a view begins with a block");
    auto* first = static_cast<std::byte*>(chunk.states[s]) + spec.bytes(begin - chunk.begin);
    views.push_back(at::from_blob(first, {spec.numel(count)}, at::TensorOptions().dtype(spec.type).device(device_)));
  }
  return views;
}

void StateShard::update_segment(const UpdatePass& pass, const StateChunk& chunk, const StateSegment& segment,
                                const at::Tensor& weights, const at::Tensor& gradient) {
  const TensorRule& rule = segment.tensor->rule;
  UpdateContext context{.pass = pass.pass, .factors = pass.factors, .part = {}, .statistics = pass.statistics};
  context.lr_scale = rule.lr_scale;
  context.numbers = pass.numbers;
  context.own_lr = pass.own_lr;
  context.factors.lr *= rule.lr_scale;
  context.factors.weight_decay = rule.weight_decay;
  const std::int64_t longest = optimizer_.longest_span(device_.type());
  for (std::int64_t done = 0; done < segment.count; done += longest) {
    const std::int64_t n = std::min(longest, segment.count - done), own = segment.flat_begin + done;
    UpdateSpan span{{}, view(chunk, segment.begin + done, n), gradient.narrow(0, own, n), weights.narrow(0, own, n)};
    span.master = span.weights;
    if (has_master_) {
      span.master = span.states.front();
      span.states.erase(span.states.begin());
    } else {
      span.weights.reset();
    }
    if (optimizer_.by_tensor())
      context.part = {segment.tensor->number, pass.statistics->shape(segment.tensor->number),
                      segment.tensor_begin + done};
    optimizer_.update(span, context);
  }
}

void StateShard::update(const UpdatePass& pass, const at::Tensor& weights, const at::Tensor& gradient) {
  if (pass.pass >= optimizer_.passes()) return;
  const StateAccess access = optimizer_.writes_states(pass.pass) ? StateAccess::read_write : StateAccess::read;
  store_->for_each_chunk(access, [&](const StateChunk& chunk) {
    for_each_segment(chunk,
                     [&](const StateSegment& segment) { update_segment(pass, chunk, segment, weights, gradient); });
  });
}

}  // namespace zero

#include "zero/core/states/state_shard.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace zero {

StateShard::StateShard(const Optimizer& optimizer, StateLayout layout, FlatRange own,
                       const std::vector<StateSpec>& states,
                       const std::function<std::unique_ptr<StateStore>(std::int64_t elements)>& make_store,
                       at::Device device, std::uint64_t seed)
    : optimizer_(optimizer),
      layout_(std::move(layout)),
      begin_(layout_.position_of(own.begin)),
      splits_master_(!states.empty() && states.front().name == "remainder"),
      has_master_(splits_master_ || (!states.empty() && states.front().name == "master")),
      device_(device),
      seed_(seed),
      wide_(states, optimizer, device),
      segments_(layout_.segments(own.begin, own.numel, optimizer.by_tensor())) {
  for (StateSegment& segment : segments_) {
    segment.begin -= begin_;
    segment.flat_begin -= own.begin;
  }
  store_ = make_store(layout_.position_of(own.begin + own.numel) - begin_);
}

std::vector<StateSegment> StateShard::segments(std::int64_t begin, std::int64_t end, std::int64_t longest) const {
  std::vector<StateSegment> parts;
  for (const StateSegment& segment : segments_) {
    const std::int64_t stop = std::min(segment.begin + segment.count, end);
    for (std::int64_t at = std::max(segment.begin, begin); at < stop; at += longest) {
      const std::int64_t skipped = at - segment.begin;
      parts.push_back({at, segment.flat_begin + skipped, std::min(longest, stop - at), segment.tensor,
                       segment.tensor_begin + skipped});
    }
  }
  return parts;
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

UpdateSpan StateShard::span_of(const StateChunk& chunk, const StateSegment& part, const at::Tensor& weights,
                               const at::Tensor& gradient) const {
  UpdateSpan span{.master = {},
                  .states = view(chunk, part.begin, part.count),
                  .gradient = gradient.narrow(0, part.flat_begin, part.count),
                  .weights = weights.narrow(0, part.flat_begin, part.count),
                  .tensor = part.tensor->number,
                  .begin = part.tensor_begin};
  if (has_master_) {
    span.master = span.states.front();
    span.states.erase(span.states.begin());
  } else {
    span.master = std::exchange(span.weights, {});
  }
  return span;
}

// The random draw for rounding an element depends on the element's index in the full tensor, not on the layout.
void StateShard::store(const UpdateSpan& wide, const UpdateSpan& stored, const StateSegment& part,
                       const UpdateContext& context) const {
  if (!wide_.needed()) return;
  const std::vector<FlatSlice> slices = layout_.slices(begin_ + part.begin, part.count);
  const auto for_each_run_of = [&](std::size_t state, const WideSpans::Draw& visit) {
    const std::string& name = store_->states()[state + std::size_t(has_master_)].name;
    for (const FlatSlice& slice : slices) {
      const TensorSpec& spec = layout_.spec(slice.tensor);
      const RoundingDraws draws{seed_, context.step, rounding_stream(spec.name, name), context.numbers};
      for_each_run(spec, slice.tensor_begin, slice.count,
                   [&](std::int64_t first, std::int64_t done, std::int64_t count) {
                     visit(draws, first, slice.range_begin + done, count);
                   });
    }
  };
  if (optimizer_.writes_states(context.pass)) wide_.store_states(wide, stored, for_each_run_of);
  if (context.pass + 1 == optimizer_.passes()) WideSpans::store_master(wide, stored);
}

void StateShard::update(const UpdateContext& context, const at::Tensor& weights, const at::Tensor& gradient) {
  if (context.pass >= optimizer_.passes()) return;
  const StateAccess access = optimizer_.writes_states(context.pass) ? StateAccess::read_write : StateAccess::read;
  wide_.take(numel());
  store_->for_each_chunk(access, [&](const StateChunk& chunk) {
    const std::vector<StateSegment> parts = segments(chunk.begin, chunk.end, wide_.longest());
    const auto update_parts = [&](std::int64_t first, std::int64_t last) {
      const at::NoGradGuard no_grad;  // applies to this thread
      for (std::int64_t p = first; p < last; ++p) {
        const StateSegment& part = parts[std::size_t(p)];
        const TensorRule& rule = part.tensor->rule;
        UpdateContext of_part = context;
        of_part.lr = rule.lr(context.lr, context.schedule);
        of_part.weight_decay = rule.weight_decay;
        const UpdateSpan stored = span_of(chunk, part, weights, gradient), wide = wide_.widen(stored);
        optimizer_.update(wide, of_part);
        store(wide, stored, part, of_part);
      }
    };
    if (wide_.by_threads())
      at::parallel_for(0, std::int64_t(parts.size()), 1, update_parts);
    else
      update_parts(0, std::int64_t(parts.size()));
  });
  wide_.release();
}

}  // namespace zero

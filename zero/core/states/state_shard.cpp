#include "zero/core/states/state_shard.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

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
      wide_(states),
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

// What is drawn to round an element depends on its place in its whole tensor, and on no layout.
void StateShard::update_wide(const UpdateSpan& stored, const UpdateContext& context, std::int64_t begin) const {
  const UpdateSpan span = wide_.widen(stored);
  optimizer_.update(span, context);
  const std::vector<StateSlice> slices = layout_.slices(begin_ + begin, span.master.numel());
  const auto for_each_run_of = [&](std::size_t state, const WideSpans::Draw& visit) {
    const std::string& name = store_->states()[state + std::size_t(has_master_)].name;
    for (const StateSlice& slice : slices) {
      const TensorSpec& spec = layout_.spec(slice.tensor);
      const RoundingDraws draws{seed_, context.factors.step, rounding_stream(spec.name, name), context.numbers};
      for_each_run(spec, slice.tensor_begin, slice.count,
                   [&](std::int64_t first, std::int64_t done, std::int64_t count) {
                     visit(draws, first, slice.range_begin + done, count);
                   });
    }
  };
  if (optimizer_.writes_states(context.pass)) wide_.store_states(span, stored, for_each_run_of);
  if (context.pass + 1 == optimizer_.passes()) WideSpans::store_master(span, stored);
}

void StateShard::update_segment(const UpdatePass& pass, const StateChunk& chunk, const StateSegment& segment,
                                const at::Tensor& weights, const at::Tensor& gradient) {
  const TensorRule& rule = segment.tensor->rule;
  UpdateContext context{.pass = pass.pass, .factors = pass.factors, .part = {}, .statistics = pass.statistics};
  context.numbers = pass.numbers;
  context.own_lr = pass.own_lr;
  context.factors.lr = rule.lr({pass.factors.lr, pass.schedule});
  context.factors.weight_decay = rule.weight_decay;
  const bool wide = wide_.needed();
  const std::int64_t longest =
      wide ? WideSpans::longest(optimizer_, device_.type()) : optimizer_.longest_span(device_.type());
  const auto update_span = [&](std::int64_t done) {
    const std::int64_t n = std::min(longest, segment.count - done), own = segment.flat_begin + done;
    UpdateContext of_span = context;
    UpdateSpan span{{}, view(chunk, segment.begin + done, n), gradient.narrow(0, own, n), weights.narrow(0, own, n)};
    span.master = span.weights;
    if (has_master_) {
      span.master = span.states.front();
      span.states.erase(span.states.begin());
    } else {
      span.weights.reset();
    }
    if (optimizer_.by_tensor())
      of_span.part = {segment.tensor->number, pass.statistics->shape(segment.tensor->number),
                      segment.tensor_begin + done};
    wide ? update_wide(span, of_span, segment.begin + done) : optimizer_.update(span, of_span);
  };
  if (wide && WideSpans::by_threads(optimizer_, device_.type()))
    return at::parallel_for(0, (segment.count + longest - 1) / longest, 1, [&](std::int64_t first, std::int64_t last) {
      const at::NoGradGuard no_grad;
      for (std::int64_t i = first; i < last; ++i) update_span(i * longest);
    });
  for (std::int64_t done = 0; done < segment.count; done += longest) update_span(done);
}

void StateShard::update(const UpdatePass& pass, const at::Tensor& weights, const at::Tensor& gradient) {
  if (pass.pass >= optimizer_.passes()) return;
  const StateAccess access = optimizer_.writes_states(pass.pass) ? StateAccess::read_write : StateAccess::read;
  if (wide_.needed())
    wide_.take(std::min(numel(), WideSpans::longest(optimizer_, device_.type())),
               WideSpans::by_threads(optimizer_, device_.type()), device_);
  store_->for_each_chunk(access, [&](const StateChunk& chunk) {
    for_each_segment(chunk,
                     [&](const StateSegment& segment) { update_segment(pass, chunk, segment, weights, gradient); });
  });
  wide_.release();
}

}  // namespace zero

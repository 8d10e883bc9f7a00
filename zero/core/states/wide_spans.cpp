#include "zero/core/states/wide_spans.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace zero {
namespace {

// In elements. A host span fits into a core's cache next to gradients and weights. A device span fits into a GPU's
// cache and is long enough to keep the GPU busy.
constexpr std::int64_t host_span = std::int64_t{1} << 14, device_span = std::int64_t{1} << 21;

bool is_wide(at::ScalarType stored) { return stored != at::kBFloat16 && stored != at::kShort; }
bool is_wide(const at::Tensor& stored) { return is_wide(stored.scalar_type()); }

}  // namespace

WideSpans::WideSpans(const std::vector<StateSpec>& stored, const Optimizer& optimizer, at::Device device)
    : optimizer_(optimizer),
      device_(device),
      narrow_(
          std::count_if(stored.begin(), stored.end(), [](const StateSpec& state) { return !is_wide(state.type); })) {}

bool WideSpans::by_threads() const { return needed() && device_.is_cpu() && optimizer_.passes() == 1; }

std::int64_t WideSpans::longest() const {
  const std::int64_t own = optimizer_.longest_span(device_.type());
  if (!needed() || optimizer_.passes() > 1) return own;
  return std::min(own, device_.is_cpu() ? host_span : device_span);
}

void WideSpans::take(std::int64_t elements) {
  if (!needed()) return;
  scratch_ = at::empty({by_threads() ? at::get_num_threads() : 1, narrow_, std::min(elements, longest())},
                       at::TensorOptions(at::kFloat).device(device_));
}

UpdateSpan WideSpans::widen(const UpdateSpan& stored) const {
  if (!needed()) return stored;
  const at::Tensor own = scratch_.select(0, scratch_.size(0) > 1 ? at::get_thread_num() : 0);
  std::int64_t used = 0;
  const auto scratch = [&](const at::Tensor& like) { return own.select(0, used++).narrow(0, 0, like.numel()); };
  UpdateSpan wide = stored;
  if (!is_wide(stored.master)) {
    wide.master = scratch(stored.master);
    join_master(stored.weights, stored.master, wide.master);
    wide.weights.reset();
  }
  for (std::size_t s = 0; s < stored.states.size(); ++s)
    if (!is_wide(stored.states[s])) wide.states[s] = scratch(stored.states[s]).copy_(stored.states[s]);
  return wide;
}

void WideSpans::store_states(const UpdateSpan& wide, const UpdateSpan& stored, const Draws& draws) const {
  for (std::size_t s = 0; s < stored.states.size(); ++s) {
    if (is_wide(stored.states[s])) continue;
    draws(s, [&](const RoundingDraws& own, std::int64_t first, std::int64_t begin, std::int64_t count) {
      round_stochastically(wide.states[s].narrow(0, begin, count), stored.states[s].narrow(0, begin, count), own,
                           first);
    });
  }
}

void WideSpans::store_master(const UpdateSpan& wide, const UpdateSpan& stored) {
  if (!is_wide(stored.master)) split_master(wide.master, stored.weights, stored.master);
}

}  // namespace zero

#include "offload/optimizer_store.h"

#include "base/error.h"

namespace zero {

void OptimizerStore::update(const StepFactors& factors, const std::vector<DecayRange>& ranges,
                            const UpdateSpans& spans) {
  ZERO_CHECK(has_master_ || (spans.weights && spans.weight_type == state_type_),
             "without a master the weights are it, in its type");
  // The weights of a store without a master, or with one and a copy of it in another type.
  OptimizerSpan whole{.state_type = state_type_,
                      .gradient = spans.gradient,
                      .gradient_type = spans.gradient_type,
                      .weights = spans.weights,
                      .weight_type = spans.weight_type,
                      .n = elements_};
  const auto gradient_bytes = static_cast<std::int64_t>(c10::elementSize(spans.gradient_type));
  const auto weight_bytes = static_cast<std::int64_t>(c10::elementSize(spans.weight_type));
  for_each_chunk(StateAccess::read_write, [&](const StateChunk& chunk) {
    OptimizerSpan span = whole;
    span.gradient = static_cast<const char*>(whole.gradient) + chunk.begin * gradient_bytes;
    if (whole.weights) span.weights = static_cast<char*>(whole.weights) + chunk.begin * weight_bytes;
    span.master = chunk.master;
    span.m = chunk.m;
    span.v = chunk.v;
    span.n = chunk.end - chunk.begin;
    if (!has_master_) std::swap(span.master, span.weights);
    update_ranges(span, factors, ranges, chunk.begin);
  });
}

ResidentOptimizerStore::ResidentOptimizerStore(const at::Tensor& master, const at::Tensor& m, const at::Tensor& v)
    : OptimizerStore(m.numel(), m.scalar_type(), master.defined()), master_(master), m_(m), v_(v) {
  for (const at::Tensor& state : {master_, m_, v_}) {
    ZERO_CHECK(!state.defined() ||
                   (state.is_contiguous() && state.numel() == elements() && state.scalar_type() == state_type()),
               "optimizer states are contiguous, of one length and type");
  }
}

void ResidentOptimizerStore::for_each_chunk(StateAccess, const std::function<void(const StateChunk&)>& visit) {
  if (elements() == 0) return;
  visit({0, elements(), master_.defined() ? master_.data_ptr() : nullptr, m_.data_ptr(), v_.data_ptr()});
}

std::unique_ptr<OptimizerStore> make_host_optimizer_store(std::int64_t elements, c10::ScalarType state_type,
                                                          bool has_master) {
  const auto zeros = [&] { return at::zeros({elements}, state_type); };
  return std::make_unique<ResidentOptimizerStore>(has_master ? zeros() : at::Tensor(), zeros(), zeros());
}

}  // namespace zero

#include "zero/optim/rules/prodigy_loops.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "base/simd/targets.h"
#include "zero/optim/kernels/span_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zero/optim/rules/prodigy_loops.cpp"
#include <hwy/foreach_target.h>

#include "zero/optim/kernels/sum_lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

/// Calls f(grain, begin, end) for grains of elements, which several threads share.
template <class F>
void by_grains(std::int64_t n, const F& f) {
  at::parallel_for(0, (n + update_grain - 1) / update_grain, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t grain = first; grain < last; ++grain)
      f(grain, grain * update_grain, std::min((grain + 1) * update_grain, n));
  });
}

HWY_INLINE hn::Vec<Floats> set(double x) { return hn::Set(Floats(), static_cast<float>(x)); }

/// The arrays of pass 0.
template <class G>
struct MomentPointers {
  const G* gradient;
  const float *p0, *master;
  float *m, *v, *s;

  MomentPointers at(std::int64_t i) const { return {gradient + i, p0 + i, master + i, m + i, v + i, s + i}; }
};

template <class G>
class TakeIn {
 public:
  HWY_INLINE explicit TakeIn(const ProdigyFactors& f) : f_(f) {}

  HWY_INLINE void operator()(const MomentPointers<G>& at) {
    const Floats d;
    for (std::int64_t part = 0; part < parts; ++part) {
      const MomentPointers<G> here = at.at(part * lanes);
      const auto g = hn::Mul(simd::HWY_NAMESPACE::load(d, here.gradient), set(f_.gradient_scale));
      along_.add(part, hn::Mul(hn::Sub(hn::LoadU(d, here.p0), hn::LoadU(d, here.master)), g));
      const auto decayed = [&](const float* x, double by) HWY_ATTR { return hn::Mul(hn::LoadU(d, x), set(by)); };
      hn::StoreU(hn::Add(decayed(here.m, f_.beta1), hn::Mul(g, set(f_.to_m))), d, here.m);
      hn::StoreU(hn::Add(decayed(here.v, f_.beta2), hn::Mul(hn::Mul(g, g), set(f_.to_v))), d, here.v);
      const auto s = hn::Add(decayed(here.s, f_.beta3), hn::Mul(g, set(f_.to_s)));
      hn::StoreU(s, d, here.s);
      size_.add(part, hn::Abs(s));
    }
  }
  /// Fewer than sixteen elements. Zeros after them add nothing to the sums.
  void rest(const MomentPointers<G>& at, std::int64_t n) {
    Rest<G> gradient(at.gradient, n);
    Rest<float> p0(at.p0, n), master(at.master, n), m(at.m, n), v(at.v, n), s(at.s, n);
    (*this)({gradient.values, p0.values, master.values, m.values, v.values, s.values});
    std::copy_n(m.values, n, at.m);
    std::copy_n(v.values, n, at.v);
    std::copy_n(s.values, n, at.s);
  }
  ProdigySums sums() const { return {along_.total(), size_.total()}; }

 private:
  const ProdigyFactors& f_;
  Sums along_, size_;
};

template <class G>
ProdigySums take_in(const UpdateSpan& span, const ProdigyFactors& factors) {
  const std::int64_t n = span.master.numel();
  const MomentPointers<G> first{elements_of<G>(span.gradient),      elements_of<float>(span.states[3]),
                                elements_of<float>(span.master),    elements_of<float>(span.states[0]),
                                elements_of<float>(span.states[1]), elements_of<float>(span.states[2])};
  std::vector<ProdigySums> found(static_cast<std::size_t>((n + update_grain - 1) / update_grain));
  by_grains(n, [&](std::int64_t grain, std::int64_t begin, std::int64_t end) HWY_ATTR {
    TakeIn<G> take(factors);
    std::int64_t i = begin;
    for (; i + width <= end; i += width) take(first.at(i));
    if (i < end) take.rest(first.at(i), end - i);
    found[static_cast<std::size_t>(grain)] = take.sums();
  });
  ProdigySums all;
  for (const ProdigySums& one : found) all.along += one.along, all.size += one.size;
  return all;
}

/// The arrays of pass 1.
template <class W>
struct StepPointers {
  float* master;
  const float *m, *v;
  W* weights;  // null: the master is the weight

  StepPointers at(std::int64_t i) const { return {master + i, m + i, v + i, weights ? weights + i : nullptr}; }
};

template <class W>
HWY_INLINE void take_sixteen(const StepPointers<W>& at, const ProdigyStep& step) {
  const Floats d;
  for (std::int64_t part = 0; part < parts; ++part) {
    const StepPointers<W> here = at.at(part * lanes);
    const auto denominator = hn::Add(hn::Sqrt(hn::LoadU(d, here.v)), set(step.eps));
    const auto p = hn::Sub(hn::Mul(hn::LoadU(d, here.master), set(step.keep)),
                           hn::Mul(hn::Div(hn::LoadU(d, here.m), denominator), set(step.step)));
    hn::StoreU(p, d, here.master);
    if (here.weights) simd::HWY_NAMESPACE::store(d, p, here.weights);
  }
}

template <class W>
void take_rest(const StepPointers<W>& at, std::int64_t n, const ProdigyStep& step) {
  Rest<float> master(at.master, n), m(at.m, n), v(at.v, n);
  W weights[width];
  take_sixteen<W>({master.values, m.values, v.values, at.weights ? weights : nullptr}, step);
  std::copy_n(master.values, n, at.master);
  if (at.weights) std::copy_n(weights, n, at.weights);
}

template <class W>
void take_step(const UpdateSpan& span, const ProdigyStep& step) {
  const StepPointers<W> first{elements_of<float>(span.master), elements_of<float>(span.states[0]),
                              elements_of<float>(span.states[1]),
                              span.weights.defined() ? elements_of<W>(span.weights) : nullptr};
  by_grains(span.master.numel(), [&](std::int64_t, std::int64_t begin, std::int64_t end) HWY_ATTR {
    std::int64_t i = begin;
    for (; i + width <= end; i += width) take_sixteen(first.at(i), step);
    if (i < end) take_rest(first.at(i), end - i, step);
  });
}

template <class G, class W>
constexpr ProdigyLoops loops{take_in<G>, take_step<W>};

const ProdigyLoops* loops_of(const UpdateSpan& span) {
  return with_types_of(span, []<class G, class W>(std::type_identity<G>, std::type_identity<W>) {
    return &loops<G, std::conditional_t<std::is_void_v<W>, float, W>>;
  });
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(loops_of);

const ProdigyLoops* prodigy_loops(const UpdateSpan& span) {
  if (!span.master.is_cpu() || span.master.scalar_type() != at::kFloat) return nullptr;
  return HWY_DYNAMIC_DISPATCH(loops_of)(span);
}

}  // namespace zero
#endif

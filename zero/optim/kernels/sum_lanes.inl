// Sums in fp64 over sixteen lanes, so that their order is the same on all processors. For kernels
// (base/simd/targets.h); included once per target, so the guard toggles.
#if defined(ZERO_OPTIM_KERNELS_SUM_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_OPTIM_KERNELS_SUM_LANES_INL
#undef ZERO_OPTIM_KERNELS_SUM_LANES_INL
#else
#define ZERO_OPTIM_KERNELS_SUM_LANES_INL
#endif

#include <algorithm>

#include "base/simd/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t width = 16;  // elements at a time, whatever the processor's vectors
using Floats = hn::CappedTag<float, width>;
using Doubles = hn::RepartitionToWide<Floats>;
using Halves = hn::Half<Floats>;
constexpr std::int64_t lanes = simd::HWY_NAMESPACE::lanes_of<Floats>, parts = width / lanes;

/// Sixteen sums in fp64.
class Sums {
 public:
  HWY_INLINE Sums() {
    for (auto& half : halves_) half = hn::Zero(Doubles());
  }
  HWY_INLINE void add(std::int64_t part, hn::Vec<Floats> x) {
    halves_[2 * part] = hn::Add(halves_[2 * part], hn::PromoteTo(Doubles(), hn::LowerHalf(Halves(), x)));
    halves_[2 * part + 1] = hn::Add(halves_[2 * part + 1], hn::PromoteTo(Doubles(), hn::UpperHalf(Halves(), x)));
  }
  HWY_INLINE void store(double* to) const {
    for (std::int64_t h = 0; h < 2 * parts; ++h) hn::StoreU(halves_[h], Doubles(), to + h * lanes / 2);
  }
  HWY_INLINE double total() const {
    double all[width], sum = 0;
    store(all);
    for (const double one : all) sum += one;
    return sum;
  }

 private:
  hn::Vec<Doubles> halves_[2 * parts];
};

/// Elements that are fewer than sixteen, in a copy. The values after them must be such that they change no sum.
template <class T>
struct Rest {
  T values[width];
  Rest(const T* at, std::int64_t n, T after = {}) { std::fill(std::copy_n(at, n, values), values + width, after); }
};

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

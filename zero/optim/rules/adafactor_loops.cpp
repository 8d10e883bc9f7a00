#include "zero/optim/rules/adafactor_loops.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/simd/targets.h"
#include "zero/optim/kernels/span_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zero/optim/rules/adafactor_loops.cpp"
#include <hwy/foreach_target.h>

#include "zero/optim/kernels/sum_lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

/// Calls f(i, pointer) for sixteen elements from `i` on. The last elements are copied, with zeros after them.
template <class T, class F>
HWY_INLINE void by_width(const T* at, std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) f(i, at + i);
  if (i < n) f(i, Rest<T>(at + i, n - i).values);
}

template <class G>
HWY_INLINE hn::Vec<Floats> gradient_at(const G* at, std::int64_t part, float scale) {
  return hn::Mul(simd::HWY_NAMESPACE::load(Floats(), at + part * lanes), hn::Set(Floats(), scale));
}

/// Calls f(begin, end) for ranges of rows or columns, one for each thread.
template <class F>
void divided(std::int64_t count, std::int64_t elements_of_one, const F& f) {
  at::parallel_for(0, count, std::max<std::int64_t>(1, update_grain / std::max<std::int64_t>(1, elements_of_one)), f);
}

/// Adds f(row) of all rows in order. Threads share the rows.
template <class F>
double sum_over_rows(std::int64_t rows, std::int64_t elements_of_one, const F& f) {
  std::vector<double> by_row(static_cast<std::size_t>(rows));
  divided(rows, elements_of_one, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t r = begin; r < end; ++r) by_row[static_cast<std::size_t>(r)] = f(r);
  });
  double sum = 0;
  for (const double one : by_row) sum += one;
  return sum;
}

template <class G>
double row_of_squares(const G* row, std::int64_t n, float scale) {
  Sums sums;
  by_width(row, n, [&](std::int64_t, const G* at) HWY_ATTR {
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto g = gradient_at(at, part, scale);
      sums.add(part, hn::Mul(g, g));
    }
  });
  return sums.total();
}

/// Adds the squares of up to sixteen columns.
template <class G>
void columns_of_squares(const G* at, std::int64_t rows, std::int64_t stride, std::int64_t n, float scale, double* to) {
  Sums sums;
  for (std::int64_t r = 0; r < rows; ++r)
    by_width(at + r * stride, n, [&](std::int64_t, const G* row) HWY_ATTR {
      for (std::int64_t part = 0; part < parts; ++part) {
        const auto g = gradient_at(row, part, scale);
        sums.add(part, hn::Mul(g, g));
      }
    });
  double found[width];
  sums.store(found);
  for (std::int64_t c = 0; c < n; ++c) to[c] += found[c];
}

template <class G>
void add_squares(const UpdateSpan& span, double gradient_scale, const MatrixRows& m, double* by_row, double* by_col) {
  const G* const g = elements_of<G>(span.gradient, m.offset);
  const auto scale = static_cast<float>(gradient_scale);
  divided(m.rows, m.cols, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t r = begin; r < end; ++r) by_row[r] += row_of_squares(g + r * m.cols, m.cols, scale);
  });
  divided((m.cols + width - 1) / width, m.rows * width, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t c = begin * width; c < std::min(end * width, m.cols); c += width)
      columns_of_squares(g + c, m.rows, m.cols, std::min(width, m.cols - c), scale, by_col + c);
  });
}

/// The steps of a row.
template <class G>
class RowSteps {
 public:
  HWY_INLINE RowSteps(const InverseRoots& roots, std::int64_t row, float scale)
      : root_(hn::Set(Floats(), roots.of_rows[row])), limit_(hn::Set(Floats(), roots.limit)), scale_(scale) {}

  HWY_INLINE hn::Vec<Floats> operator()(const G* gradient, const float* col_roots, std::int64_t part) const {
    const auto root = hn::Mul(root_, hn::LoadU(Floats(), col_roots + part * lanes));
    // A NaN is not greater, and stays one.
    return hn::Mul(gradient_at(gradient, part, scale_), hn::IfThenElse(hn::Gt(root, limit_), limit_, root));
  }

 private:
  hn::Vec<Floats> root_, limit_;
  float scale_;
};

/// Ones, whose product with a row's infinite root is the limit: zeros would give NaN.
Rest<float> rest_of_roots(const float* roots, std::int64_t n) { return Rest<float>(roots, n, 1); }

template <class G>
double row_of_steps(const G* row, std::int64_t n, const float* col_roots, const RowSteps<G>& steps) {
  Sums sums;
  const auto add = [&](const G* gradient, const float* roots) HWY_ATTR {
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto step = steps(gradient, roots, part);
      sums.add(part, hn::Mul(step, step));
    }
  };
  std::int64_t i = 0;
  for (; i + width <= n; i += width) add(row + i, col_roots + i);
  if (i < n) add(Rest<G>(row + i, n - i).values, rest_of_roots(col_roots + i, n - i).values);
  return sums.total();
}

template <class G>
double sum_of_steps(const UpdateSpan& span, double gradient_scale, const MatrixRows& m, const InverseRoots& roots) {
  const G* const g = elements_of<G>(span.gradient, m.offset);
  const auto scale = static_cast<float>(gradient_scale);
  return sum_over_rows(m.rows, m.cols, [&](std::int64_t r) HWY_ATTR {
    return row_of_steps(g + r * m.cols, m.cols, roots.of_cols, RowSteps<G>(roots, r, scale));
  });
}

/// Master and weights of a row.
template <class W>
struct UpdatedRow {
  float* master;
  W* weights;  // null: the master is the weight

  UpdatedRow at(std::int64_t i) const { return {master + i, weights ? weights + i : nullptr}; }
};

template <class G, class W>
void take_row(const G* row, std::int64_t n, const float* col_roots, const RowSteps<G>& steps, const UpdatedRow<W>& out,
              float keep, float rate) {
  const Floats d;
  const auto take = [&](const G* gradient, const float* roots, const UpdatedRow<W>& to) HWY_ATTR {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t at = part * lanes;
      const auto p = hn::Sub(hn::Mul(hn::LoadU(d, to.master + at), hn::Set(d, keep)),
                             hn::Mul(steps(gradient, roots, part), hn::Set(d, rate)));
      hn::StoreU(p, d, to.master + at);
      if (to.weights) simd::HWY_NAMESPACE::store(d, p, to.weights + at);
    }
  };
  std::int64_t i = 0;
  for (; i + width <= n; i += width) take(row + i, col_roots + i, out.at(i));
  if (i == n) return;
  const std::int64_t left = n - i;
  Rest<float> master(out.master + i, left);
  W weights[width];
  take(Rest<G>(row + i, left).values, rest_of_roots(col_roots + i, left).values,
       {master.values, out.weights ? weights : nullptr});
  std::copy_n(master.values, left, out.master + i);
  if (out.weights) std::copy_n(weights, left, out.weights + i);
}

template <class G, class W>
void take_steps(const UpdateSpan& span, double gradient_scale, const MatrixRows& m, const InverseRoots& roots,
                double keep, double rate) {
  const G* const g = elements_of<G>(span.gradient, m.offset);
  const UpdatedRow<W> out{elements_of<float>(span.master, m.offset),
                          span.weights.defined() ? elements_of<W>(span.weights, m.offset) : nullptr};
  divided(m.rows, m.cols, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t r = begin; r < end; ++r)
      take_row(g + r * m.cols, m.cols, roots.of_cols, RowSteps<G>(roots, r, static_cast<float>(gradient_scale)),
               out.at(r * m.cols), static_cast<float>(keep), static_cast<float>(rate));
  });
}

double sum_of_squares(const UpdateSpan& span) {
  constexpr std::int64_t row = 4096;
  const std::int64_t n = span.master.numel(), rows = (n + row - 1) / row;
  return sum_over_rows(rows, row, [&](std::int64_t r) HWY_ATTR {
    return row_of_squares(elements_of<float>(span.master, r * row), std::min(row, n - r * row), 1);
  });
}

template <class G, class W>
constexpr AdafactorLoops loops{sum_of_squares, add_squares<G>, sum_of_steps<G>, take_steps<G, W>};

const AdafactorLoops* loops_of(const UpdateSpan& span) {
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

const AdafactorLoops* adafactor_loops(const UpdateSpan& span) {
  if (!span.master.is_cpu() || span.master.scalar_type() != at::kFloat) return nullptr;
  return HWY_DYNAMIC_DISPATCH(loops_of)(span);
}

}  // namespace zero
#endif

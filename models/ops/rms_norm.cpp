#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "models/ops/backends.h"
#include "models/ops/row_dispatch.h"
#include "models/undivided.h"

namespace zero {

namespace {

at::Tensor normalized(const at::Tensor& x, const at::Tensor& rstd) {
  return x.to(rstd.scalar_type()) * rstd.unsqueeze(1);
}

template <class T>
kernels::RmsNormRows<T> rows_from(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& y,
                                  const at::Tensor& rstd, std::int64_t begin, std::int64_t end) {
  const std::int64_t hidden = x.size(1), at = begin * hidden;
  return {read_of<T>(x) + at,           read_of<T>(weight), data_of<T>(y) + at,
          data_of<float>(rstd) + begin, end - begin,        hidden};
}

/// The weight's gradient is summed over parts of the rows, whose number depends on the size alone, then over parts in
/// order. The result therefore has the same bits for any number of threads.
template <class T>
TensorPair backward_rows(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd,
                         bool want_weight) {
  const at::Tensor dx = at::empty_like(x);
  const std::int64_t rows = x.size(0), hidden = x.size(1);
  const std::int64_t parts = std::clamp<std::int64_t>(rows * hidden / 32768, 1, 32);
  const std::int64_t part_rows = (rows + parts - 1) / parts;
  const at::Tensor sums = want_weight ? at::zeros({parts, hidden}, rstd.options()) : at::Tensor();
  if (!x.is_meta())
    at::parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        const std::int64_t begin = part * part_rows, end = std::min(rows, begin + part_rows), at = begin * hidden;
        if (begin >= end) continue;
        kernels::row_kernels<T>().rms_norm_backward(
            {read_of<T>(dy) + at, read_of<T>(x) + at, read_of<T>(weight), read_of<float>(rstd) + begin,
             data_of<T>(dx) + at, want_weight ? data_of<float>(sums) + part * hidden : nullptr, end - begin, hidden});
      }
    });
  if (!want_weight) return {dx, at::Tensor()};
  if (!x.is_meta()) {
    float* total = data_of<float>(sums);
    for (std::int64_t part = 1; part < parts; ++part)
      for (std::int64_t i = 0; i < hidden; ++i) total[i] += total[part * hidden + i];
  }
  return {dx, sums[0].to(weight.scalar_type(), false, parts > 1)};
}

/// Returns the gradient of x plus `beside`.
TensorPair joined(TensorPair gradients, const std::optional<at::Tensor>& beside) {
  if (beside) std::get<0>(gradients).add_(*beside);
  return gradients;
}

}  // namespace

TensorPair cpu::rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  at::Tensor y, rstd;
  const bool done = with_row_kernels({&x, &weight}, [&]<class T>(T) {
    y = at::empty_like(x);
    rstd = at::empty({x.size(0)}, x.options().dtype(at::kFloat));
    by_rows(x, x.size(0), x.size(1), [&](std::int64_t begin, std::int64_t end) {
      kernels::row_kernels<T>().rms_norm(rows_from<T>(x, weight, y, rstd, begin, end), static_cast<float>(eps));
    });
  });
  return done ? TensorPair{y, rstd} : composed::rms_norm(x, weight, eps);
}

at::Tensor cpu::rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd) {
  at::Tensor y;
  const bool done = with_row_kernels({&x, &weight}, [&]<class T>(T) {
    y = at::empty_like(x);
    by_rows(x, x.size(0), x.size(1), [&](std::int64_t begin, std::int64_t end) {
      kernels::row_kernels<T>().rms_norm_again(rows_from<T>(x, weight, y, rstd, begin, end));
    });
  });
  return done ? y : composed::rms_norm_again(x, weight, rstd);
}

TensorPair cpu::rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& rstd, bool want_weight, const std::optional<at::Tensor>& beside) {
  TensorPair gradients;
  const bool done = with_row_kernels(
      {&x, &weight, &dy}, [&]<class T>(T) { gradients = backward_rows<T>(dy, x, weight, rstd, want_weight); });
  return done ? joined(gradients, beside) : composed::rms_norm_backward(dy, x, weight, rstd, want_weight, beside);
}

TensorPair composed::rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const Undivided sums;
  const at::Tensor rstd = x.to(at::toOpMathType(x.scalar_type())).square().mean(1).add_(eps).rsqrt_();
  return {rms_norm_again(x, weight, rstd), rstd};
}

at::Tensor composed::rms_norm_again(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& rstd) {
  return (normalized(x, rstd) * weight.to(rstd.scalar_type())).to(x.scalar_type());
}

// With n = x * rstd and g = dy * weight: dx = rstd * (g - n * mean(g * n)), dweight = sum over rows of dy * n.
TensorPair composed::rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& rstd, bool want_weight,
                                       const std::optional<at::Tensor>& beside) {
  const Undivided sums;
  const at::Tensor dy_precise = dy.to(rstd.scalar_type());
  const at::Tensor n = normalized(x, rstd);
  const at::Tensor g = dy_precise * weight.to(rstd.scalar_type());
  const at::Tensor dx = ((g - n * (g * n).mean(1, true)) * rstd.unsqueeze(1)).to(x.scalar_type());
  return joined({dx, want_weight ? (dy_precise * n).sum(0).to(weight.scalar_type()) : at::Tensor()}, beside);
}

}  // namespace zero

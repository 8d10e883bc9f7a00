#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <numeric>

#include "models/ops/backends.h"
#include "models/ops/row_dispatch.h"
#include "models/undivided.h"

namespace zero {

namespace {

template <class T>
kernels::CrossEntropyRow<T> row_of(const at::Tensor& logits, const at::Tensor& targets, std::int64_t row) {
  return {data_of<T>(logits) + row * logits.size(1), logits.size(1), targets.const_data_ptr<std::int64_t>()[row]};
}

/// Factors of rows' gradients in fp32: one for all rows, or one for each.
class RowScale {
 public:
  explicit RowScale(const at::Tensor& scale) {
    if (scale.is_meta()) return;
    if (scale.dim() == 0)
      one_ = scale.item<float>();
    else
      each_ = scale.to(at::kFloat);
  }
  float of(std::int64_t row) const { return each_.defined() ? read_of<float>(each_)[row] : one_; }

 private:
  float one_ = 0;
  at::Tensor each_;
};

/// Computes loss and lse with kernels. If there is a scale, then overwrites rows with gradients. False: not supported.
bool by_kernels(const at::Tensor& logits, const at::Tensor& targets, const std::optional<at::Tensor>& scale,
                TensorPair& found) {
  at::Tensor &loss = std::get<0>(found), &lse = std::get<1>(found);
  return with_row_kernels({&logits}, [&]<class T>(T) {
    const std::optional<RowScale> factor = scale ? std::optional<RowScale>(*scale) : std::nullopt;
    lse = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
    const at::Tensor losses = at::empty_like(lse);
    by_rows(logits, logits.size(0), logits.size(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = row_of<T>(logits, targets, i);
        data_of<float>(lse)[i] = kernels::row_kernels<T>().log_sum_exp(row);
        data_of<float>(losses)[i] = data_of<float>(lse)[i] - to_float(row.logits[row.target]);
        if (scale) kernels::row_kernels<T>().cross_entropy_backward(row, data_of<float>(lse)[i], factor->of(i));
      }
    });
    loss = at::empty({}, losses.options());
    if (loss.is_meta()) return;
    // summed here: LibTorch's sum of many rows depends on the number of threads
    const float* each = read_of<float>(losses);
    loss.fill_(std::accumulate(each, each + losses.numel(), 0.0));
  });
}

}  // namespace

TensorPair cpu::cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  TensorPair found;
  return by_kernels(logits, targets, {}, found) ? found : composed::cross_entropy(logits, targets);
}

TensorPair cpu::cross_entropy_gradient_(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& scale) {
  TensorPair found;
  return by_kernels(logits, targets, scale, found) ? found : composed::cross_entropy_gradient_(logits, targets, scale);
}

void cpu::cross_entropy_backward_(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                                  const at::Tensor& scale) {
  const bool done = with_row_kernels({&logits}, [&]<class T>(T) {
    if (logits.is_meta()) return;
    const RowScale factor(scale);
    by_rows(logits, logits.size(0), logits.size(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        kernels::row_kernels<T>().cross_entropy_backward(row_of<T>(logits, targets, i), read_of<float>(lse)[i],
                                                         factor.of(i));
    });
  });
  if (!done) composed::cross_entropy_backward_(logits, targets, lse, scale);
}

TensorPair composed::cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const Undivided sums;
  const at::Tensor precise = logits.to(at::toOpMathType(logits.scalar_type())), lse = precise.logsumexp(1);
  return {(lse - precise.gather(1, targets.unsqueeze(1)).squeeze(1)).sum(), lse};
}

TensorPair composed::cross_entropy_gradient_(const at::Tensor& logits, const at::Tensor& targets,
                                             const at::Tensor& scale) {
  const TensorPair found = cross_entropy(logits, targets);
  cross_entropy_backward_(logits, targets, std::get<1>(found), scale);
  return found;
}

void composed::cross_entropy_backward_(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                                       const at::Tensor& scale) {
  const Undivided sums;
  at::Tensor d = logits.to(lse.scalar_type()).sub_(lse.unsqueeze(1)).exp_();
  d.scatter_add_(1, targets.unsqueeze(1), at::full({targets.size(0), 1}, -1.0, d.options()));
  logits.copy_(d.mul_(scale.dim() == 1 ? scale.unsqueeze(1) : scale));
}

}  // namespace zero

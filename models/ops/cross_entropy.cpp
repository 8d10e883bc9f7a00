#include "models/ops/cross_entropy.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "models/ops/cuda/device_rows.h"
#include "models/ops/precise_type.h"
#include "models/ops/row_dispatch.h"

namespace zero {

namespace {

void check_targets(const at::Tensor& targets, std::int64_t vocabulary) {
  if (!targets.device().is_cpu() || targets.numel() == 0) return;  // a GPU's own gather checks
  const auto [lowest, highest] = targets.aminmax();
  if (lowest.item<std::int64_t>() < 0 || highest.item<std::int64_t>() >= vocabulary)
    throw Error(text("a target token id lies outside the vocabulary: ids from ", lowest.item<std::int64_t>(), " to ",
                     highest.item<std::int64_t>(), ", the vocabulary has ", vocabulary));
}

template <class T>
kernels::CrossEntropyRow<T> row_of(const at::Tensor& logits, const at::Tensor& targets, std::int64_t row) {
  return {static_cast<T*>(logits.data_ptr()) + row * logits.size(1), logits.size(1),
          targets.const_data_ptr<std::int64_t>()[row]};
}

float value_of(float x) { return x; }
float value_of(kernels::Bf16 x) { return c10::detail::f32_from_bits(x.bits); }

}  // namespace

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  if (cuda::takes_type(logits)) return cuda::cross_entropy(logits, targets);
  check_targets(targets, logits.size(1));
  CrossEntropy out;
  const bool done = with_row_kernels(logits, [&]<class T>(T) {
    out.lse = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
    const at::Tensor losses = at::empty_like(out.lse);
    by_rows(logits, logits.size(0), logits.size(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = row_of<T>(logits, targets, i);
        const float lse = kernels::row_kernels<T>().log_sum_exp(row);
        data_of<float>(out.lse)[i] = lse;
        data_of<float>(losses)[i] = lse - value_of(row.logits[row.target]);
      }
    });
    out.loss = losses.sum();
  });
  if (done) return out;
  const at::Tensor precise = logits.to(precise_type(logits.scalar_type()));
  out.lse = precise.logsumexp(1);
  out.loss = (out.lse - precise.gather(1, targets.unsqueeze(1)).squeeze(1)).sum();
  return out;
}

void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale) {
  if (cuda::takes_type(logits)) return cuda::cross_entropy_backward_(logits, targets, lse, scale);
  const bool done = with_row_kernels(logits, [&]<class T>(T) {
    if (logits.is_meta()) return;
    const float factor = scale.item<float>();
    by_rows(logits, logits.size(0), logits.size(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        kernels::row_kernels<T>().cross_entropy_backward(row_of<T>(logits, targets, i), read_of<float>(lse)[i], factor);
    });
  });
  if (done) return;
  at::Tensor d = logits.to(lse.scalar_type()).sub_(lse.unsqueeze(1)).exp_();
  d.scatter_add_(1, targets.unsqueeze(1), at::full({targets.size(0), 1}, -1.0, d.options()));
  logits.copy_(d.mul_(scale));
}

}  // namespace zero

#include "models/nn/device_batch.h"

#include <ATen/ATen.h>

#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "models/ops/attention.h"

namespace zero {
namespace {

struct Spans {
  std::vector<std::int32_t> begins;  // and the end
  std::int64_t longest = 0;
};

/// Returns nothing if a document continues after another one, or has a trunk.
std::optional<Spans> spans_of(const at::Tensor& documents) {
  const at::Tensor numbers = documents.contiguous();
  const std::int64_t B = numbers.size(0), T = numbers.size(1);
  const auto* document = numbers.const_data_ptr<std::int32_t>();
  Spans spans;
  for (std::int64_t row = 0; row < B; ++row) {
    std::set<std::int32_t> seen;
    for (std::int64_t t = 0; t < T; ++t) {
      const std::int32_t here = document[row * T + t];
      if (is_trunk(here)) return std::nullopt;
      if (t > 0 && here == document[row * T + t - 1]) continue;
      if (!seen.insert(here).second && here >= 0) return std::nullopt;
      spans.begins.push_back(static_cast<std::int32_t>(row * T + t));
    }
  }
  spans.begins.push_back(static_cast<std::int32_t>(B * T));
  for (std::size_t s = 1; s < spans.begins.size(); ++s)
    spans.longest = std::max<std::int64_t>(spans.longest, spans.begins[s] - spans.begins[s - 1]);
  return spans;
}

}  // namespace

Batch to_device(const Batch& batch, at::Device device, at::ScalarType compute) {
  if (device.is_cpu()) return batch;
  const auto move = [&](const at::Tensor& t) {
    return t.defined() ? t.pin_memory().to(device, /*non_blocking=*/true) : t;
  };
  Batch there;
  there.ids = move(batch.ids);
  there.targets = move(batch.targets);
  there.positions = move(batch.positions);
  there.documents = move(batch.documents);
  there.token_weights = move(batch.token_weights);
  there.row_weights = move(batch.row_weights);
  for (const auto& [name, tensor] : batch.named) there.named[name] = move(tensor);
  if (!batch.documents.defined()) return there;
  const bool half = compute == at::kBFloat16 || compute == at::kHalf;
  if (const std::optional<Spans> spans = half ? spans_of(batch.documents) : std::nullopt) {
    there.spans = move(at::tensor(at::ArrayRef<std::int32_t>(spans->begins), at::kInt));
    there.longest_span = spans->longest;
  } else {
    const at::Tensor sees = document_mask(there.documents);
    there.bias = at::zeros(sees.sizes(), sees.options().dtype(compute))
                     .masked_fill_(sees.bitwise_not(), -std::numeric_limits<double>::infinity());
  }
  return there;
}

}  // namespace zero

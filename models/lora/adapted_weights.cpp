#include "models/lora/adapted_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {

namespace {

bool is_adapters(const std::string& name) { return name.starts_with(peft_prefix); }

std::vector<TensorSpec> of_base(const std::vector<TensorSpec>& tensors) {
  std::vector<TensorSpec> found;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(found),
               [](const TensorSpec& t) { return !is_adapters(t.name); });
  return found;
}

}  // namespace

std::string AdaptedWeights::stored_name(const TensorSpec& tensor) const {
  return is_adapters(tensor.name) ? tensor.name : adapter_->place(tensor).whole;
}

void AdaptedWeights::check(const std::vector<TensorSpec>& tensors) {
  base_->check(of_base(tensors));
  for (const TensorSpec& tensor : tensors) {
    if (!is_adapters(tensor.name)) continue;
    const StoredTensor* stored = adapter_->file().find(tensor.name);
    ZERO_CHECK(stored && stored->shape == tensor.shape,
               tensor.name + ": the model was adapted by other options than the adapter's");
  }
}

void AdaptedWeights::check_values() {
  base_->check_values();
  adapter_->check_values();
}

void AdaptedWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const std::string name = stored_name(tensor);
  if (name.empty()) return base_->read(tensor, begin, count, out);
  adapter_->file().read(name, begin, count, out);
}

void AdaptedWeights::read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                             const at::Tensor& out) {
  if (!stored_name(tensor).empty()) return WeightSource::read_as(tensor, type, begin, count, out);
  base_->read_as(tensor, type, begin, count, out);
}

void FreshAdapter::check(const std::vector<TensorSpec>& tensors) {
  base_tensors_ = of_base(tensors);
  base_->check(base_tensors_);
}

void FreshAdapter::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  if (tensor.name.ends_with(".lora_magnitude_vector")) return read_lengths(tensor, begin, count, out);
  (is_adapters(tensor.name) ? drawn_ : base_)->read(tensor, begin, count, out);
}

void FreshAdapter::read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                           const at::Tensor& out) {
  if (is_adapters(tensor.name)) return WeightSource::read_as(tensor, type, begin, count, out);
  base_->read_as(tensor, type, begin, count, out);
}

void FreshAdapter::read_lengths(const TensorSpec& magnitude, std::int64_t begin, std::int64_t count,
                                const at::Tensor& out) {
  const std::string prefix = peft_prefix;
  const std::string weight =
      magnitude.name.substr(prefix.size(), magnitude.name.rfind(".lora_magnitude_vector") - prefix.size()) + ".weight";
  const auto base =
      std::find_if(base_tensors_.begin(), base_tensors_.end(), [&](const TensorSpec& t) { return t.name == weight; });
  ZERO_CHECK(base != base_tensors_.end(), "no base weight for " + magnitude.name);
  const std::int64_t columns = base->shape[1];
  const at::Tensor rows = at::empty({count * columns}, at::kFloat);
  base_->read(*base, begin * columns, count * columns, rows);
  out.copy_(rows.view({count, columns}).square().sum(1, false, at::kDouble).sqrt());
}

void MergedWeights::check_values() {
  base_->check_values();
  adapter_->check_values();
}

void MergedWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  if (adapter_->place(tensor).a.empty()) return read_unadapted(tensor, begin, count, out);
  const std::int64_t columns = tensor.shape[1], first = begin / columns,
                     rows = (begin + count - 1) / columns - first + 1;
  out.copy_(merged_rows(tensor, first, rows).view({-1}).narrow(0, begin - first * columns, count));
}

void MergedWeights::read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                            const at::Tensor& out) {
  const AdapterContents::Place& place = adapter_->place(tensor);
  if (!place.a.empty() || !place.whole.empty()) return WeightSource::read_as(tensor, type, begin, count, out);
  base_->read_as(tensor, type, begin, count, out);
}

void MergedWeights::read_unadapted(const TensorSpec& tensor, std::int64_t begin, std::int64_t count,
                                   const at::Tensor& out) {
  const std::string& whole = adapter_->place(tensor).whole;
  if (whole.empty()) return base_->read(tensor, begin, count, out);
  adapter_->file().read(whole, begin, count, out);
}

at::Tensor MergedWeights::merged_rows(const TensorSpec& tensor, std::int64_t first, std::int64_t rows) {
  const AdapterContents::Place& place = adapter_->place(tensor);
  const SafetensorsFile& file = adapter_->file();
  const std::int64_t columns = tensor.shape[1], r = adapter_->options().r;
  const double scale = adapter_->options().scale();
  const at::Tensor a = file.read(place.a).to(at::kFloat);
  at::Tensor merged = at::empty({rows * columns}, at::kFloat);
  read_unadapted(tensor, first * columns, rows * columns, merged);
  if (adapter_->is_input_first(tensor)) {
    const at::Tensor b = file.read(place.b).to(at::kFloat);
    return merged.view({rows, columns}).add_(at::mm(a.narrow(1, first, rows).t(), b.t()), scale);
  }
  const at::Tensor b = at::empty({rows * r}, at::kFloat);
  file.read(place.b, first * r, rows * r, b);
  merged = merged.view({rows, columns}).add_(at::mm(b.view({rows, r}), a), scale);
  if (!place.magnitude.empty()) {
    const at::Tensor magnitude = at::empty({rows}, at::kFloat);
    file.read(place.magnitude, first, rows, magnitude);
    merged.mul_(magnitude.div(merged.square().sum(1).sqrt()).unsqueeze(1));
  }
  return merged;
}

}  // namespace zero

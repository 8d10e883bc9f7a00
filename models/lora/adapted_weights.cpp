#include "models/lora/adapted_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

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

[[noreturn]] void throw_other_base(const PeftDirectory& adapter, const std::string& what) {
  throw InputError(adapter.folder() + ": " + what +
                   ": the adapter belongs to another base model, or adapter_config.json to another adapter");
}

void check_stored(const PeftDirectory& adapter, const std::string& name, const std::vector<std::int64_t>& shape) {
  const StoredTensor* stored = adapter.weights().find(name);
  if (!stored) throw_other_base(adapter, "tensor \"" + name + "\" is missing");
  if (stored->shape != shape)
    throw_other_base(adapter, "tensor \"" + name + "\" has " + shape_text(stored->shape) +
                                  ", where the model and r want " + shape_text(shape));
}

/// Refuses tensors of the adapter that are not among `known`, and an embedding without the head that the model ties to it:
/// PEFT writes both where both were trained as one.
void check_places(const PeftDirectory& adapter, const std::set<std::string>& known, const DecoderNames& names,
                  bool tied) {
  const std::string head = peft_prefix + names.head + ".weight", embedding = peft_prefix + names.embedding + ".weight";
  const SafetensorsFile& file = adapter.weights();
  const bool both = tied && adapter.options().ensure_weight_tying && known.contains(embedding);
  for (const StoredTensor& stored : file.tensors())
    if (!known.contains(stored.name) && !(both && stored.name == head))
      throw_other_base(adapter, "the model has no place for tensor \"" + stored.name + "\"");
  if (!both) return;
  if (!file.find(head))
    throw_other_base(adapter, "tensor \"" + head + "\" is missing beside \"" + embedding + "\", although they are one");
  if (!at::equal(file.read(head), file.read(embedding)))
    throw_other_base(adapter, "\"" + head + "\" differs from \"" + embedding + "\", although they are one");
}

/// Whether the head is no tensor of its own.
bool is_tied(const std::vector<TensorSpec>& tensors, const DecoderNames& names) {
  return std::none_of(tensors.begin(), tensors.end(),
                      [&](const TensorSpec& t) { return t.name == names.head + ".weight"; });
}

std::string module_of(const std::string& weight_name) { return weight_name.substr(0, weight_name.rfind(".weight")); }

}  // namespace

std::string AdaptedWeights::stored_name(const std::string& name) const {
  if (is_adapters(name)) return name;
  const std::string saved = peft_prefix + name;
  return adapter_->weights().find(saved) ? saved : "";
}

void AdaptedWeights::check(const std::vector<TensorSpec>& tensors) {
  base_->check(of_base(tensors));
  std::set<std::string> known;
  for (const TensorSpec& tensor : tensors) {
    const std::string name = stored_name(tensor.name);
    if (name.empty()) continue;
    check_stored(*adapter_, name, tensor.shape);
    known.insert(name);
  }
  check_places(*adapter_, known, names_, is_tied(tensors, names_));
}

void AdaptedWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const std::string name = stored_name(tensor.name);
  if (name.empty()) return base_->read(tensor, begin, count, out);
  adapter_->weights().read(name, begin, count, out);
}

void AdaptedWeights::read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                             const at::Tensor& out) {
  if (!stored_name(tensor.name).empty()) return WeightSource::read_as(tensor, type, begin, count, out);
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

void MergedWeights::check(const std::vector<TensorSpec>& tensors) {
  base_->check(tensors);
  const SafetensorsFile& file = adapter_->weights();
  std::set<std::string> known;
  for (const TensorSpec& tensor : tensors) {
    const std::string module = peft_prefix + module_of(tensor.name);
    const bool whole = file.find(peft_prefix + tensor.name) != nullptr;
    if (whole) {
      check_stored(*adapter_, peft_prefix + tensor.name, tensor.shape);
      known.insert(peft_prefix + tensor.name);
    } else if (file.find(module + ".lora_A.weight")) {
      const std::int64_t out = tensor.shape[names_.input_first ? 1 : 0], in = tensor.shape[names_.input_first ? 0 : 1];
      check_stored(*adapter_, module + ".lora_A.weight", {adapter_->options().r, in});
      check_stored(*adapter_, module + ".lora_B.weight", {out, adapter_->options().r});
      if (names_.input_first && adapter_->options().use_dora)
        throw InputError(adapter_->folder() + ": \"use_dora\" is not supported for weights that are stored [in, out]");
      known.insert({module + ".lora_A.weight", module + ".lora_B.weight"});
      if (adapter_->options().use_dora) {
        check_stored(*adapter_, module + ".lora_magnitude_vector", {tensor.shape[0]});
        known.insert(module + ".lora_magnitude_vector");
      }
    }
  }
  check_places(*adapter_, known, names_, is_tied(tensors, names_));
}

void MergedWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const SafetensorsFile& file = adapter_->weights();
  const std::string module = peft_prefix + module_of(tensor.name);
  if (file.find(peft_prefix + tensor.name)) return file.read(peft_prefix + tensor.name, begin, count, out);
  if (!file.find(module + ".lora_A.weight")) return base_->read(tensor, begin, count, out);
  const std::int64_t columns = tensor.shape[1], first = begin / columns,
                     rows = (begin + count - 1) / columns - first + 1;
  out.copy_(merged_rows(tensor, module, first, rows).view({-1}).narrow(0, begin - first * columns, count));
}

at::Tensor MergedWeights::merged_rows(const TensorSpec& tensor, const std::string& module, std::int64_t first,
                                      std::int64_t rows) {
  const SafetensorsFile& file = adapter_->weights();
  const std::int64_t columns = tensor.shape[1], r = adapter_->options().r;
  const at::Tensor a = file.read(module + ".lora_A.weight").to(at::kFloat);
  at::Tensor merged = at::empty({rows * columns}, at::kFloat);
  base_->read(tensor, first * columns, rows * columns, merged);
  if (names_.input_first) {
    const at::Tensor b = file.read(module + ".lora_B.weight").to(at::kFloat);
    return merged.view({rows, columns}).add_(at::mm(a.narrow(1, first, rows).t(), b.t()), adapter_->options().scale());
  }
  const at::Tensor b = at::empty({rows * r}, at::kFloat);
  file.read(module + ".lora_B.weight", first * r, rows * r, b);
  merged = merged.view({rows, columns}).add_(at::mm(b.view({rows, r}), a), adapter_->options().scale());
  if (adapter_->options().use_dora) {
    const at::Tensor magnitude = at::empty({rows}, at::kFloat);
    file.read(module + ".lora_magnitude_vector", first, rows, magnitude);
    merged.mul_(magnitude.div(merged.square().sum(1).sqrt()).unsqueeze(1));
  }
  return merged;
}

}  // namespace zero

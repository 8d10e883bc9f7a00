#include "models/lora/adapter_writer.h"

#include <filesystem>

#include "base/error.h"
#include "models/lora/peft_directory.h"

namespace zero {
namespace {

// Adapters already have their full names. Modules that are saved in full get PEFT's prefix.
std::string peft_name(const std::string& name) { return name.starts_with(peft_prefix) ? name : peft_prefix + name; }

}  // namespace

AdapterWriter::AdapterWriter(const std::string& folder, const std::vector<TensorSpec>& tensors, const Family& family,
                             const LoraOptions& options, PissaWeights* pissa, const AdapterContents* start)
    : folder_(folder),
      names_(family.names),
      options_(pissa ? plain_options(options) : options),
      pissa_(pissa),
      start_(start) {
  std::filesystem::create_directories(folder);
  std::vector<SafetensorsSpec> specs;
  for (const TensorSpec& tensor : tensors) {
    specs.push_back({peft_name(tensor.name), at::kFloat, pissa ? PissaWeights::plain_shape(tensor) : tensor.shape});
    for (const std::int64_t size : specs.back().shape)
      ZERO_CHECK(size > 0, "tensor " + tensor.name + " of the adapter is empty");
    if (is_head_too(tensor)) specs.push_back({peft_name(names_.head + ".weight"), at::kFloat, tensor.shape});
  }
  if (start_)
    for (const StoredTensor& tensor : start_->beside()) specs.push_back({tensor.name, at::kFloat, tensor.shape});
  writer_ = std::make_unique<SafetensorsWriter>(folder + "/adapter_model.safetensors", specs);
}

/// PEFT also expects a tied head under its own name.
bool AdapterWriter::is_head_too(const TensorSpec& tensor) const {
  return options_.ensure_weight_tying && tensor.name == names_.embedding + ".weight";
}

void AdapterWriter::append(const TensorSpec& tensor, const at::Tensor& value) {
  const at::Tensor plain = pissa_ ? pissa_->as_plain(tensor, value) : value;
  writer_->append(plain);
  if (is_head_too(tensor)) writer_->append(plain);
}

void AdapterWriter::finish(const std::string& base, const TokenizerSource& tokenizer) {
  if (start_)
    for (const StoredTensor& tensor : start_->beside()) writer_->append(start_->file().read(tensor.name));
  writer_->finish();
  write_tokenizer_files(folder_, tokenizer);
  LoraOptions written = options_;
  // PEFT finds a tied embedding only under the names embed_tokens and lm_head.
  if (written.ensure_weight_tying) written.modules_to_save.push_back(names_.head);
  write_adapter_config(folder_, written, base);
}

}  // namespace zero

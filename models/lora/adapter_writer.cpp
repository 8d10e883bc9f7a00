#include "models/lora/adapter_writer.h"

#include <filesystem>

#include "base/error.h"
#include "models/lora/peft_directory.h"

namespace zero {
namespace {

// Adapters carry their full names; modules that are saved whole get the prefix that PEFT gives them.
std::string peft_name(const std::string& name) { return name.starts_with(peft_prefix) ? name : peft_prefix + name; }

}  // namespace

AdapterWriter::AdapterWriter(const std::string& folder, const std::vector<TensorSpec>& tensors, PissaWeights* pissa)
    : folder_(folder), pissa_(pissa) {
  std::filesystem::create_directories(folder);
  std::vector<SafetensorsSpec> specs;
  for (const TensorSpec& tensor : tensors) {
    specs.push_back({peft_name(tensor.name), at::kFloat, pissa ? PissaWeights::plain_shape(tensor) : tensor.shape});
    for (const std::int64_t size : specs.back().shape)
      ZERO_CHECK(size > 0, "tensor " + tensor.name + " of the adapter is empty");
  }
  writer_ = std::make_unique<SafetensorsWriter>(folder + "/adapter_model.safetensors", specs);
}

void AdapterWriter::append(const TensorSpec& tensor, const at::Tensor& value) {
  writer_->append(pissa_ ? pissa_->as_plain(tensor, value) : value);
}

void AdapterWriter::finish(const LoraOptions& options, const std::string& base, const TokenizerSource& tokenizer) {
  writer_->finish();
  write_tokenizer_files(folder_, tokenizer);
  write_adapter_config(folder_, pissa_ ? plain_options(options) : options, base);
}

}  // namespace zero

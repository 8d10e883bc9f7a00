#include "zero/train/save_adapter.h"

#include <filesystem>
#include <memory>

#include "comm/error.h"
#include "models/peft_directory.h"
#include "models/safetensors_writer.h"
#include "zero/data/together.h"

namespace zero {
namespace {

// Adapters carry their full names; modules that are saved whole get the prefix that PEFT gives them.
std::string peft_name(const std::string& name) { return name.starts_with(peft_prefix) ? name : peft_prefix + name; }

std::vector<TensorSpec> trained_tensors(Engine& engine) {
  std::vector<TensorSpec> tensors;
  for (const auto& group : engine.groups()) {
    if (!group->spec().trainable) continue;
    for (const FlatTensor& tensor : group->layout().tensors()) tensors.push_back(tensor.spec);
  }
  return tensors;
}

}  // namespace

AdapterWriter::AdapterWriter(const std::string& folder, const std::vector<TensorSpec>& tensors, PissaWeights* pissa) : folder_(folder), pissa_(pissa) {
  std::filesystem::create_directories(folder);
  std::vector<SafetensorsSpec> specs;
  for (const TensorSpec& tensor : tensors) {
    specs.push_back({peft_name(tensor.name), at::kFloat, pissa ? PissaWeights::plain_shape(tensor) : tensor.shape});
    for (const std::int64_t size : specs.back().shape) ZERO_CHECK(size > 0, "tensor " + tensor.name + " of the adapter is empty");
  }
  writer_ = std::make_unique<SafetensorsWriter>(folder + "/adapter_model.safetensors", specs);
}

void AdapterWriter::append(const TensorSpec& tensor, const at::Tensor& value) { writer_->append(pissa_ ? pissa_->as_plain(tensor, value) : value); }

void AdapterWriter::finish(const LoraOptions& options, const std::string& base, const TokenizerSource& tokenizer) {
  writer_->finish();
  write_tokenizer_files(folder_, tokenizer);
  write_adapter_config(folder_, pissa_ ? plain_options(options) : options, base);
}

void save_adapter(Engine& engine, const LoraOptions& options, PissaWeights* pissa, const std::string& folder, const std::string& base, const TokenizerSource& tokenizer) {
  Communicator& ranks = engine.host();
  std::unique_ptr<AdapterWriter> writer;  // rank 0's
  run_on_first(ranks, [&] { writer = std::make_unique<AdapterWriter>(folder, trained_tensors(engine), pissa); });
  engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) { run_on_first(ranks, [&] { writer->append(spec, value); }); }, true);
  run_on_first(ranks, [&] { writer->finish(options, base, tokenizer); });
}

}  // namespace zero

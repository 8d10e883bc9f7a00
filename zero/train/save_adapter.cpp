#include "zero/train/save_adapter.h"

#include <filesystem>
#include <memory>

#include "comm/error.h"
#include "models/peft_directory.h"
#include "models/safetensors_writer.h"
#include "zero/train/first_rank_work.h"

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

void AdapterWriter::finish(const LoraOptions& options, const std::string& base) {
  writer_->finish();
  write_adapter_config(folder_, pissa_ ? plain_options(options) : options, base);
}

void save_adapter(Engine& engine, const LoraOptions& options, PissaWeights* pissa, const std::string& folder, const std::string& base) {
  std::unique_ptr<AdapterWriter> writer;
  FirstRankWork first(engine.host());
  first.attempt([&] { writer = std::make_unique<AdapterWriter>(folder, trained_tensors(engine), pissa); });
  engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) { first.attempt([&] { writer->append(spec, value); }); }, true);
  first.attempt([&] { writer->finish(options, base); });
  first.finish();
}

}  // namespace zero

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

std::vector<SafetensorsSpec> trained_specs(Engine& engine, bool pissa) {
  std::vector<SafetensorsSpec> specs;
  for (const auto& group : engine.groups()) {
    if (!group->spec().trainable) continue;
    for (const FlatTensor& tensor : group->layout().tensors()) {
      specs.push_back({peft_name(tensor.spec.name), at::kFloat, pissa ? PissaWeights::plain_shape(tensor.spec) : tensor.spec.shape});
    }
  }
  return specs;
}

}  // namespace

void save_adapter(Engine& engine, const LoraOptions& options, PissaWeights* pissa, const std::string& folder, const std::string& base) {
  std::unique_ptr<SafetensorsWriter> writer;
  FirstRankWork first(engine.host());
  first.attempt([&] {
    std::filesystem::create_directories(folder);
    const std::vector<SafetensorsSpec> specs = trained_specs(engine, pissa != nullptr);
    for (const SafetensorsSpec& spec : specs)
      for (std::int64_t size : spec.shape) ZERO_CHECK(size > 0, "tensor " + spec.name + " of the adapter is empty");
    writer = std::make_unique<SafetensorsWriter>(folder + "/adapter_model.safetensors", specs);
  });
  engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) { first.attempt([&] { writer->append(pissa ? pissa->as_plain(spec, value) : value); }); }, true);
  first.attempt([&] {
    writer->finish();
    write_adapter_config(folder, pissa ? plain_options(options) : options, base);
  });
  first.finish();
}

}  // namespace zero

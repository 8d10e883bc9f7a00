#include "models/lora/gguf_adapter.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/gguf/gguf_check.h"
#include "models/formats/gguf/gguf_layout.h"
#include "models/formats/gguf_metadata.h"
#include "models/formats/gguf_writer.h"
#include "models/weight_source.h"

namespace zero {
namespace {

void check_what_fits(const AdapterContents& adapter, const Model& model) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(text(adapter.folder(), ": ", why,
                          "; merge the adapter into its model instead: zero_export MODEL OUT.gguf --adapter ",
                          adapter.folder(), " --gguf F16"));
  };
  gguf_family(model.config.model_type);
  if (adapter.options().use_dora) refuse("DoRA's magnitudes have no place in an adapter as GGUF, which adds B A alone");
  for (const TensorSpec& tensor : tensors_of(model))
    if (const std::string& whole = adapter.place(tensor).whole; !whole.empty())
      refuse(text("\"", whole, "\" is a whole tensor (as of modules_to_save), and an adapter as GGUF adds B A alone"));
}

GgufMetadata metadata_of(const LoraOptions& options, const Model& model, const std::string& name) {
  GgufMetadata metadata;
  metadata.add("general.architecture", gguf_family(model.config.model_type).gguf.name);
  metadata.add("general.type", "adapter");
  metadata.add("general.name", name);
  metadata.add_uint32("general.file_type", 0);  // F32
  metadata.add("adapter.type", "lora");
  metadata.add_float32("adapter.lora.alpha",
                       options.scale() * static_cast<double>(options.r));  // llama.cpp divides by r
  return metadata;
}

}  // namespace

void write_gguf_adapter(const std::string& path, const AdapterContents& adapter, const Model& model,
                        const std::string& name) {
  check_what_fits(adapter, model);
  const SafetensorsFile& file = adapter.file();
  std::vector<GgufTensor> described;
  std::vector<std::pair<std::string, bool>> sources;  // names in the adapter's file; true if rows are permuted
  const GgufLayout layout(model.config);
  for (const TensorSpec& tensor : tensors_of(model)) {
    const AdapterContents::Place& stored = adapter.place(tensor);
    if (stored.a.empty()) continue;
    const GgufPlace place = layout.place(tensor.name);
    described.push_back({place.name + ".lora_a", file.find(stored.a)->shape, GgmlType::f32});
    sources.emplace_back(stored.a, false);
    described.push_back({place.name + ".lora_b", file.find(stored.b)->shape, GgmlType::f32});
    sources.emplace_back(stored.b, place.rotated);
  }
  GgufWriter writer(path, metadata_of(adapter.options(), model, name), described);
  for (const auto& [source, rotated] : sources) {
    const at::Tensor values = file.read(source).to(at::kFloat);
    writer.append(rotated ? neighbours_from_halves(values, model.config.head_dim) : values);
  }
  writer.finish();
}

}  // namespace zero

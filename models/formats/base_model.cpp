#include "models/formats/base_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "models/families/families.h"
#include "models/formats/gguf/gguf_config.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/hf_directory.h"
#include "models/formats/hf_weights.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

/// The embedding's type in a GGUF file.
at::ScalarType stored_type_of_gguf(const GgufFile& file) {
  const GgufEntry* embedding = file.find("token_embd.weight");
  if (embedding && embedding->type == GgmlType::f16) return at::kHalf;
  return embedding && embedding->type == GgmlType::f32 ? at::kFloat : at::kBFloat16;
}

at::ScalarType stored_type_of_tensors(const HfDirectory& directory) {
  const DecoderNames& names = family_of(directory.config().model_type).names;
  const std::string embedding = names.embedding + ".weight";
  for (const std::string& name : {embedding, embedding.substr(embedding.find('.') + 1), names.head + ".weight"})
    if (const StoredTensor* stored = directory.find(name); stored && stored->type) return *stored->type;
  return at::kFloat;
}

/// transformers 5 writes `dtype`, earlier versions `torch_dtype`.
at::ScalarType declared_type(const std::string& path) {
  const nlohmann::json file = read_json_object(is_folder(path) ? path + "/config.json" : path);
  for (const char* key : {"dtype", "torch_dtype"}) {
    const nlohmann::json type = file.value(key, nlohmann::json());
    if (type == "bfloat16") return at::kBFloat16;
    if (type == "float16") return at::kHalf;
  }
  return at::kFloat;
}

}  // namespace

bool is_gguf_model(const std::string& path) {
  return !is_folder(path) && (fs::path(path).extension() == ".gguf" || GgufFile::is_one(path));
}

ModelConfig config_of_model(const std::string& path) {
  return is_gguf_model(path) ? open_gguf_model(path).config : read_model_config(path);
}

ModelConfig architecture_of(const std::string& preset) {
  if (!preset.ends_with(".json")) return preset_config(preset);
  if (!is_file(preset))
    throw InputError(preset + ": is no file here; a preset is a name, or the path of a config.json");
  return read_model_config(preset);
}

bool holds_weights(const std::string& path) { return is_gguf_model(path) || HfDirectory::holds_weights(path); }

std::shared_ptr<WeightSource> weights_of_model(const std::string& path, UnusedTensors unused) {
  if (is_gguf_model(path)) return open_gguf_model(path, unused).weights;
  return std::make_shared<HfWeights>(std::make_shared<HfDirectory>(path), unused);
}

at::ScalarType stored_type_of_model(const std::string& path) {
  if (is_gguf_model(path)) return stored_type_of_gguf(GgufFile(path));
  const at::ScalarType type = holds_weights(path) ? stored_type_of_tensors(HfDirectory(path)) : declared_type(path);
  return type == at::kBFloat16 || type == at::kHalf ? type : at::kFloat;
}

}  // namespace zero

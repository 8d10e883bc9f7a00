#include "models/formats/base_model.h"

#include <filesystem>

#include "base/files/lookup.h"
#include "models/formats/gguf/gguf_config.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/hf_weights.h"

namespace zero {

bool is_gguf_model(const std::string& path) {
  return !is_folder(path) && (std::filesystem::path(path).extension() == ".gguf" || GgufFile::is_one(path));
}

ModelConfig config_of_model(const std::string& path) {
  return is_gguf_model(path) ? open_gguf_model(path).config : HfDirectory(path).config();
}

bool holds_weights(const std::string& path) { return is_gguf_model(path) || HfDirectory::holds_weights(path); }

std::shared_ptr<WeightSource> weights_of_model(const std::string& path, UnusedTensors unused) {
  if (is_gguf_model(path)) return open_gguf_model(path, unused).weights;
  return std::make_shared<HfWeights>(std::make_shared<HfDirectory>(path), unused);
}

}  // namespace zero

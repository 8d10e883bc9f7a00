#include "models/families/families.h"

#include "base/error.h"
#include "base/log.h"
#include "models/llama/llama.h"

namespace zero {

const std::vector<ModelFamily>& model_families() {
  static const std::vector<ModelFamily> families{{"llama", make_llama}};
  return families;
}

Model make_model(const ModelConfig& config) {
  std::string known;
  for (const ModelFamily& family : model_families()) {
    if (family.model_type == config.model_type) return family.make(config);
    known += (known.empty() ? "\"" : ", \"") + family.model_type + "\"";
  }
  throw InputError(text("model_type \"", config.model_type, "\" is not supported; known are ", known));
}

}  // namespace zero

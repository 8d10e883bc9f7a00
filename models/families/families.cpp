#include "models/families/families.h"

#include "base/error.h"
#include "base/log.h"
#include "models/decoder/decoder.h"

namespace zero {

// One function per file of this folder.
const Family& mistral_family();
const Family& qwen2_family();
const Family& qwen3_family();
const Family& phi3_family();
const Family& gemma3_family();
const Family& olmo2_family();
const Family& smollm3_family();
const Family& gpt2_family();
const Family& granite_family();
const Family& starcoder2_family();

const std::vector<const Family*>& model_families() {
  static const std::vector<const Family*> families{
      &llama_family(), &mistral_family(), &qwen2_family(), &qwen3_family(),   &phi3_family(),      &gemma3_family(),
      &olmo2_family(), &smollm3_family(), &gpt2_family(),  &granite_family(), &starcoder2_family()};
  return families;
}

const Family& family_of(const std::string& model_type) {
  std::string known;
  for (const Family* family : model_families()) {
    if (family->model_type == model_type) return *family;
    known += (known.empty() ? "\"" : ", \"") + family->model_type + "\"";
  }
  throw InputError(text("model_type \"", model_type, "\" is not supported; known are ", known,
                        ": take a model of one of them, or add the family (docs/extending/model.md)"));
}

Model make_model(const ModelConfig& config, SlicePlace place) {
  return make_decoder(config, family_of(config.model_type).names, place);
}

}  // namespace zero

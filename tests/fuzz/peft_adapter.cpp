// An adapter's folder over a small model: options, tensors, the adapted weights and the merged ones.
#include <ATen/ATen.h>

#include "base/error.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "models/lora/adapted_weights.h"
#include "models/lora/lora.h"
#include "tests/fuzz/fuzz_folder.h"

namespace zero {
namespace peft_adapter_target {

ModelConfig small() {
  ModelConfig config = preset_config("llama-tiny");
  config.vocab_size = 8;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  return config;
}

void read_all(WeightSource& weights, const std::vector<TensorSpec>& tensors) {
  weights.check(tensors);
  for (const TensorSpec& tensor : tensors) weights.read(tensor, 0, tensor.numel(), at::empty({tensor.numel()}));
}

void use(const FuzzFiles& files) {
  static const ModelConfig config = small();
  const std::string folder = FuzzFolder::with(files).path();
  Model plain = make_model(config), adapted = make_model(config);
  const auto adapter = open_adapter(folder, plain);
  const auto base = std::make_shared<RandomWeights>(plain, 1);
  MergedWeights merged(base, adapter);
  read_all(merged, tensors_of(plain));
  add_lora(adapted, adapter->options());
  AdaptedWeights weights(base, adapter);
  read_all(weights, tensors_of(adapted));
}

const FuzzTarget target(
    "peft_adapter",
    {{"adapter_config.json",
      FileForm::json,
      {R"(["q_proj", "v_proj"])", R"("all-linear")", R"(".*proj")", R"(["lm_head", "norm"])", "true", "2", "16",
       R"("gaussian")", R"("pissa")", R"("LORA")", R"(["model.embed_tokens"])", R"({"q_proj": 4})"}},
     {"adapter_model.safetensors",
      FileForm::safetensors,
      {R"({"dtype": "F32", "shape": [2, 8], "data_offsets": [0, 64]})", R"("F16")", "[8, 2]", "[2, 8]"}}},
    use);

}  // namespace peft_adapter_target
}  // namespace zero

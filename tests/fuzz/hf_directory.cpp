// A Hugging Face directory: config.json, an index, two shards. The model is built, checked and filled.
#include "models/formats/hf_directory.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/json_text.h"
#include "models/families/families.h"
#include "models/formats/base_model.h"
#include "models/formats/generation_config.h"
#include "tests/fuzz/fuzz_folder.h"

namespace zero {
namespace hf_directory_target {

void use(const FuzzFiles& files) {
  const std::string folder = FuzzFolder::with(files).path();
  const ModelConfig config = config_of_model(folder);
  const nlohmann::json index = read_json_object(folder + "/model.safetensors.index.json");
  if (const auto shards = index.find("weight_map"); shards != index.end())
    for (const auto& [tensor, name] : shards->items())
      if (name.get<std::string>().find('/') != std::string::npos)
        throw InternalError("a shard outside the folder was read");
  stop_ids_of(config, folder, {});
  const std::shared_ptr<WeightSource> weights = weights_of_model(folder);
  const std::vector<TensorSpec> tensors = tensors_of(make_model(config));
  weights->check(tensors);
  weights->check_values();
  for (const TensorSpec& tensor : tensors) weights->read(tensor, 0, tensor.numel(), at::empty({tensor.numel()}));
}

const FuzzTarget target("hf_directory",
                        {{"config.json", FileForm::json, {"0", "true", "[2, 3]", R"("gelu")"}},
                         {"model.safetensors.index.json",
                          FileForm::json,
                          {R"("model-00001-of-00002.safetensors")", R"("../a")", R"("config.json")",
                           R"({"weight_map": {}})"}},
                         {"model-00001-of-00002.safetensors", FileForm::safetensors, {R"("F32")", "[0, 64]", "[4, 4]"}},
                         {"model-00002-of-00002.safetensors", FileForm::safetensors, {R"("BF16")", "[0, 64]", "[4]"}},
                         {"generation_config.json", FileForm::json, {R"({"eos_token_id": [1, 2]})", "0.5"}}},
                        use);

}  // namespace hf_directory_target
}  // namespace zero

// config.json of every family: what is accepted is built as a chain, written, and read to the same again.
#include "models/model_config.h"

#include "base/error.h"
#include "models/families/config_json.h"
#include "models/families/families.h"
#include "tests/fuzz/fuzz_folder.h"

namespace zero {
namespace model_config_target {

void use(const FuzzFiles& files) {
  const ModelConfig config = parse_model_config(files.begin()->second, "config.json");
  const std::string written = format_model_config(config, "float32");
  if (format_model_config(parse_model_config(written, "again"), "float32") != written)
    throw InternalError("config.json is not what was read");
  make_model(config);
}

const FuzzTarget target(
    "model_config",
    {{"config.json",
      FileForm::json,
      {R"("llama")",
       R"("mistral")",
       R"("qwen2")",
       R"("qwen3")",
       R"("phi3")",
       R"("gemma3_text")",
       R"("olmo2")",
       R"("smollm3")",
       R"("gpt2")",
       R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32})",
       R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32})",
       R"({"type": "longrope", "long_factor": [1.0, 2.0], "short_factor": [1.0, 1.5]})",
       R"({"rope_type": "linear", "factor": 2.0})",
       R"({"rope_type": "dynamic", "factor": 2.0})",
       R"("gelu_pytorch_tanh")",
       R"("silu")",
       R"(["full_attention", "sliding_attention"])",
       "128",
       "0.5",
       "1000000"}}},
    use);

}  // namespace model_config_target
}  // namespace zero

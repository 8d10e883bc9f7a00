#include "models/model_config.h"
#include "models/families/config_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace model_config_test {

using ::testing::HasSubstr;

std::string config_json(const std::string& extra = "",
                        const std::string& sizes = R"("hidden_size": 64, "num_attention_heads": 4)") {
  return R"({"model_type": "llama", "vocab_size": 512, "intermediate_size": 172, "num_hidden_layers": 3, )" + sizes +
         (extra.empty() ? "" : ", " + extra) + "}";
}

const Llama3Scaling& llama3_of(const ModelConfig& config) { return std::get<Llama3Scaling>(*config.rope_scaling); }

std::string refusal(const std::string& json) {
  try {
    parse_model_config(json, "dir/config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelConfig, PresetsHaveTheirPublishedShapes) {
  const ModelConfig small = preset_config("llama-15m");
  EXPECT_EQ(small.head_dim, 48);
  EXPECT_EQ(small.num_key_value_heads, 6);
  EXPECT_TRUE(small.tie_word_embeddings);
  const ModelConfig large = preset_config("tinyllama-1.1b");
  EXPECT_EQ(large.head_dim, 64);
  EXPECT_EQ(large.num_hidden_layers, 22);
  EXPECT_FALSE(large.tie_word_embeddings);
  for (const auto& name : preset_names()) EXPECT_NO_THROW(validate(preset_config(name), name));
  EXPECT_THROW(preset_config("llama-7b"), InputError);
}

TEST(ModelConfig, ReadsWhatTransformersWrites) {
  const std::string path = ZERO_TEST_DATA "/tiny-tied-bf16-sharded/model/config.json";
  const ModelConfig config = parse_model_config(read_text_file(path), path);
  EXPECT_EQ(config.vocab_size, 515);
  EXPECT_EQ(config.num_key_value_heads, 3);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.rope_theta, 100000.0);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_FALSE(config.rope_scaling);
  EXPECT_EQ(config.eos_token_ids, std::vector<std::int64_t>{2});
}

TEST(ModelConfig, FillsWhatIsAbsentAsTransformersDoes) {
  const ModelConfig config = parse_model_config(config_json(), "x");
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(config.bos_token_id, 1);
}

TEST(ModelConfig, ReadsBothSpellingsOfTheLlama3Rope) {
  const std::string fields =
      R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 4096)";
  for (const std::string& rope :
       {R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", )" + fields + "}",
        R"("rope_theta": 500000.0, "rope_scaling": {"type": "llama3", )" + fields + "}",
        R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", )" + fields + "}"}) {
    const ModelConfig config = parse_model_config(config_json(rope), "x");
    ASSERT_TRUE(config.rope_scaling) << rope;
    EXPECT_EQ(config.rope_theta, 500000.0);
    EXPECT_EQ(llama3_of(config).factor, 8.0);
    EXPECT_EQ(llama3_of(config).original_max_position_embeddings, 4096);
  }
}

TEST(ModelConfig, WritesWhatItReadsAgain) {
  ModelConfig config = preset_config("llama-110m");
  config.rope_scaling = Llama3Scaling{.factor = 32.0};
  config.eos_token_ids = {2, 7};
  config.bos_token_id.reset();
  config.rms_norm_eps = 1e-5;
  const ModelConfig again = parse_model_config(format_model_config(config, "bfloat16"), "x");
  EXPECT_EQ(format_model_config(again, "bfloat16"), format_model_config(config, "bfloat16"));
  EXPECT_EQ(llama3_of(again).factor, 32.0);
  EXPECT_EQ(again.eos_token_ids, config.eos_token_ids);
  EXPECT_FALSE(again.bos_token_id);
}

/// This happens in files written for readers of both names.
TEST(ModelConfig, TakesRopeFieldsThatSayTheSameTwice) {
  for (const char* rope : {R"("rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 2.0}, )"
                           R"("rope_parameters": {"rope_theta": 1e6, "rope_type": "linear", "factor": 2})",
                           R"("rope_scaling": {"type": "linear", "factor": 2.0, "rope_theta": 1e6}, )"
                           R"("rope_parameters": {"rope_type": "linear", "factor": 2, "type": null})"}) {
    const ModelConfig config = parse_model_config(config_json(rope), "x");
    EXPECT_EQ(config.rope_theta, 1e6) << rope;
    EXPECT_EQ(std::get<LinearScaling>(*config.rope_scaling).factor, 2.0) << rope;
  }
}

TEST(ModelConfig, NamesTheFileAndTheKeyOfAWrongType) {
  for (const char* rope : {R"("rope_parameters": "linear")", R"("rope_parameters": ["linear"])",
                           R"("rope_scaling": 3, "rope_parameters": null)"})
    EXPECT_THAT(
        refusal(config_json(std::string(R"("rope_theta": 1e4, )") + rope)),
        ::testing::AllOf(HasSubstr("dir/config.json: \"rope_"), HasSubstr("\" must be an object or null, not")));
}

TEST(ModelConfig, RefusesWhatTheDecoderDoesNotDo) {
  EXPECT_THAT(refusal(config_json(R"("attn_pdrop": 0.1)")), HasSubstr("attn_pdrop"));
  EXPECT_THAT(refusal(config_json(R"("clip_qkv": 8)")), HasSubstr("clip_qkv"));
  EXPECT_THAT(refusal(config_json(R"("sliding_window": 512)")), HasSubstr("sliding_window"));
  EXPECT_THAT(refusal(config_json(R"("hidden_act": "mish")")), HasSubstr("hidden_act"));
  EXPECT_THAT(refusal(config_json(R"("hidden_act": null)")), HasSubstr("hidden_act is null"));
  for (const char* theta : {"1", "1.0", "0.5"})
    EXPECT_THAT(refusal(config_json(text(R"("rope_scaling": {"type": "yarn", "factor": 2.0}, "rope_theta": )", theta))),
                HasSubstr("must be above 1 for rope_type \"yarn\""));
  EXPECT_THAT(refusal(config_json(R"("rope_scaling": {"type": "dynamic", "factor": 2.0})")), HasSubstr("dynamic"));
  EXPECT_THAT(refusal(config_json(R"("rope_scaling": {"type": "linear"})")), HasSubstr("needs factor"));
  EXPECT_THAT(refusal(config_json(R"("rope_scaling": {"type": "linear", "factor": 2.0, "mrope_section": [1]})")),
              HasSubstr("mrope_section"));
  EXPECT_THAT(
      refusal(config_json(R"("rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"})")),
      HasSubstr("twice"));
  EXPECT_THAT(refusal(config_json(
                  R"("rope_theta": 1e4, "rope_scaling": {"rope_theta": 5e5, "type": "linear", "factor": 2.0})")),
              HasSubstr("twice"));
  for (const char* scaling : {R"({"type": "linear", "factor": 4.0})", R"({"type": "yarn", "factor": 2.0})",
                              R"({"type": "linear", "factor": 2.0, "rope_theta": 2e4})"})
    EXPECT_THAT(refusal(config_json(R"("rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 2.0}, )"
                                    R"("rope_scaling": )" +
                                    std::string(scaling))),
                HasSubstr("contradict each other"));
  EXPECT_THAT(refusal(config_json(R"("rope_parameters": {"rope_type": "llama3"})")), HasSubstr("needs factor"));
  EXPECT_THAT(refusal(config_json(R"("quantization_config": {"bits": 4})")), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal(R"({"model_type": "mamba"})"), HasSubstr("mamba"));
  EXPECT_THAT(refusal("{}"), HasSubstr("model_type"));
  EXPECT_THAT(refusal(R"({"model_type": "llama"})"), HasSubstr("vocab_size is missing"));
}

TEST(ModelConfig, RefusesNonsense) {
  EXPECT_THAT(refusal(config_json("", R"("hidden_size": 65, "num_attention_heads": 4)")), HasSubstr("no multiple"));
  EXPECT_THAT(refusal(config_json("", R"("hidden_size": 64.5, "num_attention_heads": 4)")), HasSubstr("integer"));
  EXPECT_THAT(refusal(config_json("", R"("hidden_size": -64, "num_attention_heads": 4)")), HasSubstr("hidden_size"));
  EXPECT_THAT(refusal(config_json("", R"("hidden_size": 18446744073709551615, "num_attention_heads": 4)")),
              HasSubstr("integer"));
  EXPECT_THAT(refusal(config_json("", R"("hidden_size": 64, "num_attention_heads": 0)")),
              HasSubstr("num_attention_heads"));
  EXPECT_THAT(refusal(config_json(R"("num_key_value_heads": 3)")), HasSubstr("num_key_value_heads"));
  std::string deep = config_json("");  // each layer costs memory, whatever the model's size
  deep.replace(deep.find("num_hidden_layers"),
               deep.find(',', deep.find("num_hidden_layers")) - deep.find("num_hidden_layers"),
               "num_hidden_layers\": 65536");
  EXPECT_THAT(refusal(deep), HasSubstr("must be from 1 to 4096"));
  EXPECT_THAT(refusal(config_json(R"("head_dim": 15)")), HasSubstr("even"));
  EXPECT_THAT(refusal(config_json(R"("eos_token_id": 512)")), HasSubstr("vocabulary"));
  EXPECT_THAT(refusal(config_json(R"("rms_norm_eps": "small")")), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("object"));
  EXPECT_THAT(refusal("{\"model_type\": \"llama\""), HasSubstr("JSON"));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "model_type": "llama"})"), HasSubstr("twice"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("deeper"));
  EXPECT_THAT(refusal("{\"a\": \"\xff\"}"), HasSubstr("byte 7 (0xFF) is not UTF-8"));
  EXPECT_THAT(refusal(std::string(2 << 20, ' ')), HasSubstr("bytes"));
}

TEST(ModelConfig, SetsFieldsOfAPreset) {
  ModelConfig config = preset_config("llama-15m");
  set_model_field(config, "hidden_size", "256");
  set_model_field(config, "num_attention_heads", "8");
  set_model_field(config, "num_key_value_heads", "8");
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_NO_THROW(validate(config, "model"));
  set_model_field(config, "head_dim", "64");
  set_model_field(config, "hidden_size", "512");
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_THROW(set_model_field(config, "hiden_size", "256"), InputError);
  EXPECT_THROW(set_model_field(config, "hidden_size", "\"wide\""), InputError);
  config = preset_config("llama-15m");
  set_model_field(config, "hidden_size", "256");
  EXPECT_THROW(validate(config, "model"), InputError);  // 6 heads
}

// A row of two sequences is at most twice as long as one. Longrope looks at the length of each.
TEST(ModelConfig, TakesTrunksWhereTheyChangeNothing) {
  ModelConfig config = preset_config("llama-tiny");
  EXPECT_TRUE(takes_trunks(config, 2048));
  config.layers = {LayerAttention{}, LayerAttention{.window = 128}};
  EXPECT_TRUE(takes_trunks(config, 64));
  EXPECT_FALSE(takes_trunks(config, 65));
  config.layers.clear();
  LongRopeScaling longrope;
  longrope.original_max_position_embeddings = 100;
  config.rope_scaling = longrope;
  EXPECT_TRUE(takes_trunks(config, 100));
  EXPECT_FALSE(takes_trunks(config, 101));
}

}  // namespace model_config_test
}  // namespace zero

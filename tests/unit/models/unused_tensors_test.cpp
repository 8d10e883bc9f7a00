// Tensors of a model's file that nothing asks for.
#include "models/formats/unused_tensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "models/families/families.h"
#include "models/formats/base_model.h"
#include "models/formats/hf_directory.h"
#include "models/formats/safetensors_writer.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string tiny = ZERO_TEST_DATA "/tiny/model";

TEST(UnusedTensors, BelongToTheDecoderIfTheirModuleDoes) {
  const DecoderNames llama, gpt2 = family_of("gpt2").names;
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.bias", "model.layers.0.self_attn.q_proj.weight_scale",
        "model.layers.0.self_attn.q_proj.weight_scale_inv", "model.layers.0.self_attn.k_scale",
        "model.layers.0.self_attn.q_norm.weight", "model.layers.7.mlp.up_proj.weight", "layers.7.mlp.up_proj.weight",
        "model.layers.0.mlp.up_proj.lora_A.default.weight", "model.layers.0.mlp.up_proj.base_layer.weight",
        "base_model.model.model.layers.0.mlp.up_proj.lora_B.weight", "module.model.layers.0.mlp.up_proj.bias",
        "vision.q.lora_A.weight", "model.norm.bias", "norm.bias", "model.embed_tokens.weight_scale", "lm_head.bias",
        "lm_head.weight"})
    EXPECT_TRUE(belongs_to_decoder(name, llama)) << name;
  for (const char* name :
       {"v_head.summary.weight", "score.weight", "classifier.bias", "model.embeddings.position_ids",
        "mtp.layers.0.weight", "model.mtp_layers.0.mlp.up_proj.weight", "model.vision_tower.layers.0.weight",
        "lm_head_extra.weight", "model.layers_extra.0.weight", "model.rotary_emb.inv_freq"})
    EXPECT_FALSE(belongs_to_decoder(name, llama)) << name;
  for (const char* name : {"transformer.h.0.attn.q.weight", "h.12.ln_1.weight", "wpe.bias", "transformer.ln_f.scale"})
    EXPECT_TRUE(belongs_to_decoder(name, gpt2)) << name;
}

/// The tiny model with one tensor more.
class LargerModel {
 public:
  explicit LargerModel(const std::string& name) {
    const HfDirectory source(tiny);
    std::filesystem::copy(tiny + "/config.json", folder_ / "config.json");
    std::vector<SafetensorsSpec> specs;
    for (const std::string& known : source.names()) specs.push_back({known, at::kFloat, source.find(known)->shape});
    specs.push_back({name, at::kFloat, {3}});
    SafetensorsWriter writer(folder_ / "model.safetensors", specs);
    for (const SafetensorsSpec& spec : specs) writer.append(at::ones(spec.shape));
    writer.finish();
  }
  const std::string& path() const { return folder_.path(); }
  /// The log's text if the model is checked twice.
  std::string noted(UnusedTensors rule) const {
    ::testing::internal::CaptureStderr();
    const auto weights = weights_of_model(path(), rule);
    for (int i = 0; i < 2; ++i) weights->check(tensors_of(make_model(config_of_model(path()))));
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  TemporaryFolder folder_;
};

TEST(UnusedTensors, ThatBelongToTheModelAreRefused) {
  const LargerModel model("model.layers.0.self_attn.q_proj.bias");
  EXPECT_THAT(message_of<InputError>([&] { model.noted(UnusedTensors::refuse); }),
              AllOf(HasSubstr(model.path()), HasSubstr("q_proj.bias"), HasSubstr("--allow-unused")));
  ::testing::internal::GetCapturedStderr();
}

TEST(UnusedTensors, AreNotedOnceWhereTheyAreLeftOut) {
  const auto times = [](const std::string& log) {
    std::size_t count = 0, at = 0;
    for (; (at = log.find("holds 1 tensor that this model does not use", at)) != log.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(times(LargerModel("model.layers.0.self_attn.q_proj.bias").noted(UnusedTensors::allow)), 1U);
  EXPECT_EQ(times(LargerModel("v_head.summary.weight").noted(UnusedTensors::refuse)), 1U);
  for (const char* computed : {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"})
    EXPECT_EQ(LargerModel(computed).noted(UnusedTensors::refuse), "") << computed;
}

}  // namespace
}  // namespace zero

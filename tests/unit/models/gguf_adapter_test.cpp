// An adapter as GGUF: llama.cpp's names and keys, its order of rows, and what has no place in such a file.
#include "models/lora/gguf_adapter.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "models/families/families.h"
#include "models/formats/hf_directory.h"
#include "tests/unit/message_of.h"
#include "tests/unit/models/gguf_reader.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using testing::HasSubstr;

const std::string lora = ZERO_TEST_DATA "/tiny-lora";

/// The golden case's adapter with other options.
struct Changed {
  explicit Changed(const std::function<void(LoraOptions&)>& change) {
    LoraOptions options = PeftDirectory(lora + "/adapter").options();
    change(options);
    std::filesystem::copy_file(lora + "/adapter/adapter_model.safetensors", folder / "adapter_model.safetensors");
    write_adapter_config(folder.path(), options, "base");
  }
  void write(const std::string& path) const {
    const Model model = make_model(HfDirectory(lora + "/model").config());
    write_gguf_adapter(path, PeftDirectory(folder.path()), model, "tiny");
  }
  TemporaryFolder folder;
};

TEST(GgufAdapter, HoldsAAndBUnderTheNamesOfLlamaCpp) {
  const TemporaryFolder out;
  Changed([](LoraOptions&) {}).write(out / "a.gguf");
  const test::GgufFile file(out / "a.gguf");
  const PeftDirectory adapter(lora + "/adapter");
  EXPECT_EQ(file.texts.at("general.type"), "adapter");
  EXPECT_EQ(file.texts.at("general.architecture"), "llama");
  EXPECT_EQ(file.texts.at("adapter.type"), "lora");
  EXPECT_EQ(file.numbers.at("adapter.lora.alpha"), adapter.options().alpha);
  EXPECT_EQ(file.tensors.size(), adapter.weights().tensors().size());
  const std::string layer = "base_model.model.model.layers.1.";
  const auto theirs = [&](const std::string& name) { return adapter.weights().read(layer + name).to(at::kFloat); };
  EXPECT_TRUE(file.values("blk.1.attn_q.weight.lora_a").equal(theirs("self_attn.q_proj.lora_A.weight")));
  EXPECT_TRUE(file.values("blk.1.attn_v.weight.lora_b").equal(theirs("self_attn.v_proj.lora_B.weight")));
  const at::Tensor q = theirs("self_attn.q_proj.lora_B.weight");  // [4 heads of 16, r]
  EXPECT_TRUE(file.values("blk.1.attn_q.weight.lora_b").equal(q.view({4, 2, 8, -1}).swapaxes(1, 2).reshape(q.sizes())));
}

TEST(GgufAdapter, TakesTheScaleOfRsloraIntoAlpha) {
  const TemporaryFolder out;
  Changed([](LoraOptions& options) {
    options.use_rslora = true;
    options.alpha = 6;
  }).write(out / "a.gguf");
  const double r = double(PeftDirectory(lora + "/adapter").options().r);
  EXPECT_FLOAT_EQ(test::GgufFile(out / "a.gguf").numbers.at("adapter.lora.alpha"), 6 * std::sqrt(r));
}

TEST(GgufAdapter, RefusesWhatHasNoPlaceInIt) {
  const TemporaryFolder out;
  const auto refusal = [&](const std::function<void(LoraOptions&)>& change) {
    return message_of<InputError>([&] { Changed(change).write(out / "a.gguf"); });
  };
  EXPECT_THAT(refusal([](LoraOptions& options) { options.use_dora = true; }), HasSubstr("DoRA"));
  EXPECT_THAT(refusal([](LoraOptions& options) { options.modules_to_save = {"lm_head"}; }),
              HasSubstr("modules_to_save"));
  EXPECT_FALSE(std::filesystem::exists(out / "a.gguf"));
}

}  // namespace
}  // namespace zero

// An adapter as GGUF: llama.cpp's names, keys and order of rows.
#include "models/lora/gguf_adapter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "models/families/families.h"
#include "models/formats/hf_directory.h"
#include "models/formats/safetensors_writer.h"
#include "models/weight_source.h"
#include "tests/unit/models/gguf_reader.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

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
    write_gguf_adapter(path, *open_adapter(folder.path(), model), model, "tiny");
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

/// An adapter of rank 2 over two modules of a golden family's block 0, in the file that llama.cpp opens.
test::GgufFile of_family(const TemporaryFolder& folder, const std::string& name,
                         const std::vector<std::string>& modules) {
  const Model model = make_model(HfDirectory(ZERO_TEST_DATA "/families/" + name + "/model").config());
  const DecoderNames& names = family_of(model.config.model_type).names;
  std::vector<SafetensorsSpec> specs;
  for (const TensorSpec& tensor : tensors_of(model))
    for (const std::string& module : modules)
      if (tensor.name == names.layers + ".0." + module + ".weight") {
        const std::string prefix = peft_prefix + tensor.name.substr(0, tensor.name.rfind(".weight"));
        const auto in = tensor.shape[names.input_first ? 0 : 1], out = tensor.shape[names.input_first ? 1 : 0];
        specs.push_back({prefix + ".lora_A.weight", at::kFloat, {2, in}});
        specs.push_back({prefix + ".lora_B.weight", at::kFloat, {out, 2}});
      }
  SafetensorsWriter writer(folder / "adapter_model.safetensors", specs);
  for (const SafetensorsSpec& spec : specs) writer.append(at::arange(spec.shape[0] * spec.shape[1], at::kFloat));
  writer.finish();
  LoraOptions options = PeftDirectory(lora + "/adapter").options();
  options.r = 2;
  options.target_modules.clear();
  for (const std::string& module : modules) options.target_modules.push_back(names.layers + ".0." + module);
  write_adapter_config(folder.path(), options, "base");
  write_gguf_adapter(folder / "a.gguf", *open_adapter(folder.path(), model), model, "small");
  return test::GgufFile(folder / "a.gguf");
}

TEST(GgufAdapter, HasTheNamesOfTheFamilysArchitecture) {
  const TemporaryFolder plain, fused, transposed, turned;
  const auto qwen3 = of_family(plain, "qwen3", {"self_attn.q_proj", "mlp.down_proj"});
  EXPECT_EQ(qwen3.texts.at("general.architecture"), "qwen3");
  EXPECT_EQ(qwen3.values("blk.0.attn_q.weight.lora_b")[1][0].item<double>(), 2);  // rows stay where they are
  EXPECT_TRUE(qwen3.tensors.contains("blk.0.ffn_down.weight.lora_a"));
  const auto phi3 = of_family(fused, "phi3-longrope", {"self_attn.qkv_proj", "mlp.gate_up_proj"});
  EXPECT_TRUE(phi3.tensors.contains("blk.0.attn_qkv.weight.lora_b"));
  EXPECT_TRUE(phi3.tensors.contains("blk.0.ffn_up.weight.lora_b"));
  const auto gpt2 = of_family(transposed, "gpt2", {"attn.c_attn", "mlp.c_proj"});
  EXPECT_EQ(gpt2.tensors.at("blk.0.attn_qkv.weight.lora_b").shape, (std::vector<std::int64_t>{48, 2}));
  EXPECT_EQ(gpt2.tensors.at("blk.0.ffn_down.weight.lora_a").shape, (std::vector<std::int64_t>{2, 64}));
  const auto smollm3 = of_family(turned, "smollm3", {"self_attn.k_proj"});
  EXPECT_EQ(smollm3.values("blk.0.attn_k.weight.lora_b")[1][0].item<double>(), 8);  // row 4 of 8
}

}  // namespace
}  // namespace zero

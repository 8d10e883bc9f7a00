#include "zero/config/run_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

/// tiny-lora's adapter as an adapter_config.json with these target_modules would have it.
class StoredAdapter {
 public:
  explicit StoredAdapter(const nlohmann::json& target_modules) {
    const std::string from = ZERO_TEST_DATA "/tiny-lora/adapter";
    fs::copy(from + "/adapter_model.safetensors", folder_ / "adapter_model.safetensors");
    nlohmann::json config = nlohmann::json::parse(read_text_file(from + "/adapter_config.json"));
    config["target_modules"] = target_modules;
    write_text_file(folder_ / "adapter_config.json", config.dump());
  }

  /// True if target_modules (TOML) may be given with it.
  bool agrees_with(const std::string& target_modules) const {
    const Config config = parse_config("[job]\noutput_dir = \"out\"\n[model]\npath = \"" ZERO_TEST_DATA
                                       "/tiny-lora/model\"\n[data]\ntrain = [\"tokens.bin\"]\n[training]\nsteps = 1\n"
                                       "seq_len = 8\n[lora]\nadapter = \"" +
                                           folder_.path() + "\"\ntarget_modules = " + target_modules + "\n",
                                       "c.toml");
    try {
      lora_options_of(config);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

 private:
  TemporaryFolder folder_;
};

// PEFT 0.21 writes "all-linear" down as the whole name of each module, in any order.
TEST(LoraOptionsOf, TargetsGivenWithAnAdapterMayNameItsProjectionsDifferently) {
  nlohmann::json queries, all;
  for (const char* layer : {"2", "0", "1"}) {
    const std::string prefix = std::string("model.layers.") + layer + ".";
    queries.push_back(prefix + "self_attn.q_proj");
    for (const char* module : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                               "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      all.push_back(prefix + module);
  }
  const StoredAdapter of_all(all), of_queries(queries);
  EXPECT_TRUE(of_all.agrees_with("\"all-linear\""));
  EXPECT_TRUE(
      of_all.agrees_with(R"(["up_proj", "down_proj", "gate_proj", "o_proj", "self_attn.k_proj", "q_proj", "v_proj"])"));
  EXPECT_FALSE(of_all.agrees_with(R"(["q_proj", "v_proj"])"));
  EXPECT_TRUE(of_queries.agrees_with(R"(["q_proj"])"));
  EXPECT_FALSE(of_queries.agrees_with("\"all-linear\""));
  EXPECT_FALSE(of_queries.agrees_with(R"(["q_proj", "k_projection"])"));  // which is there in no layer
}

}  // namespace
}  // namespace zero

// The dropout of a run: that of config.json, unless keys or preferences say otherwise.
#include <gtest/gtest.h>

#include <fstream>

#include "models/families/config_json.h"
#include "tests/unit/temporary_folder.h"
#include "zero/config/setup.h"

namespace zero {
namespace {

ModelConfig model_of(const std::string& section, const std::string& preference = "") {
  const std::string data = preference.empty() ? "a.bin" : "a.jsonl";
  return model_config_of(parse_config("[job]\noutput_dir='out'\n[model]\n" + section + "\n[data]\ntrain=['" + data +
                                          "']\n[training]\nsteps=1\nseq_len=8\n" + preference,
                                      "config.toml"));
}

TEST(RunDropout, IsThatOfTheModelUnlessAKeySaysOtherwise) {
  const TemporaryFolder folder;
  std::ofstream(folder / "config.json") << R"({"model_type": "gpt2", "vocab_size": 64, "n_embd": 16, "n_layer": 1,
    "n_head": 2, "resid_pdrop": 0.2})";
  const std::string path = "path='" + folder.path() + "'\n";
  EXPECT_EQ(model_of(path).trained_dropout(), (DropoutShares{0.1, 0.1, 0.2}));
  const ModelConfig changed = model_of(path + "attention_dropout=0\nresidual_dropout=0.5");
  EXPECT_EQ(changed.trained_dropout(), (DropoutShares{0.1, 0, 0.5}));
  EXPECT_EQ(changed.dropout, (DropoutShares{0.1, 0.1, 0.2})) << "files keep what the model has";
  const std::string answers = "[preference]\nmethod='dpo'\n";
  EXPECT_EQ(model_of(path, answers).trained_dropout(), DropoutShares());
  EXPECT_EQ(model_of(path + "embedding_dropout=0.3", answers).trained_dropout(), (DropoutShares{0.3, 0, 0}));
}

TEST(RunDropout, OfAPresetIsWrittenWithIt) {
  EXPECT_FALSE(model_of("preset='llama-tiny'").trained_dropout().any());
  const ModelConfig model = model_of("preset='llama-tiny'\nattention_dropout=0.25");
  EXPECT_EQ(model.trained_dropout(), (DropoutShares{0, 0.25, 0}));
  EXPECT_EQ(parse_model_config(format_model_config(model, "float32"), "x").dropout, model.dropout);
}

}  // namespace
}  // namespace zero

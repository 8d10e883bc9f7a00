// Real conversations, read as zero_train reads them. Packed into rows, or each in a row of its own, they give the
// adapters of a LoRA run the same gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "comm/fake/fake_communicator.h"
#include "models/initial_weights.h"
#include "zero/config/config.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/core/chain.h"
#include "zero/train/run_data.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

class PackedGradients : public ::testing::Test {
 protected:
  // 10 of the example's 164 conversations, that a run in fp64 takes a second.
  void SetUp() override {
    fs::create_directories(folder_);
    std::ifstream in(ZERO_TEST_DATA "/../../examples/data/humaneval-chat.jsonl");
    std::ofstream out(folder_ / "chat.jsonl");
    std::string line;
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(std::getline(in, line));
      out << line << '\n';
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  Config config(bool packing, const std::string& precision) const {
    const std::string text =
        "[job]\noutput_dir = \"" + (folder_ / "out").string() +
        "\"\n[model]\npreset = \"llama-tiny\"\nvocab_size = 32000\nhidden_size = 32\n" +
        "num_attention_heads = 4\nnum_key_value_heads = 2\nmax_position_embeddings = 1024\n[data]\ntrain = [\"" +
        (folder_ / "chat.jsonl").string() +
        "\"]\ntokenizer = \"" ZERO_TEST_DATA "/tinyllama-chat/tokenizer.model\"\npacking = " +
        (packing ? "true" : "false") + "\n[training]\nepochs = 1\nseq_len = 1024\nprecision = \"" + precision +
        "\"\n[lora]\nr = 4\ntarget_modules = \"all-linear\"\n";
    return parse_config(text, "run.toml");
  }

  struct Result {
    std::int64_t rows = 0, trained = 0;
    bool several_in_a_row = false;
    std::map<std::string, at::Tensor> gradients;  // of the loss over all trained tokens
  };

  Result run(bool packing, at::ScalarType type) const {
    const Config config = this->config(packing, "fp32");
    const BatchArithmetic batch = BatchArithmetic::of(config, 1);
    const ModelConfig shape = model_config_of(config);
    const std::optional<Tokenizer> tokenizer = tokenizer_of(config, shape);
    FakeCommunicator communicator(0, 1);
    const TrainingData data = open_training_data(config, batch, shape, tokenizer, communicator);
    RunModel made = make_run_model(config, shape, false);
    for (auto& unit : made.model.units)
      for (const Adapter& adapter : unit->adapters()) {  // a fresh B of zeros would leave A without a gradient
        unit->parameters()[adapter.b].init = Init::normal;
        unit->parameters()[adapter.b].init_scale = 0.2;
      }
    EngineOptions options = engine_options_of(config, batch);
    options.precision = {type, type, type, type};
    Mesh mesh(communicator);
    Engine engine(chain_of(made.model), mesh, options);
    RandomWeights weights(made.model, 0);
    engine.load(weights);

    Result result;
    Loader& loader = *data.training;
    result.rows = steps_of(config, data);  // one row a step
    for (std::int64_t row = 0; row < result.rows; ++row) result.trained += loader.trained_tokens(row);
    for (std::int64_t row = 0; row < result.rows; ++row) {
      const Batch one = loader.batch(row, 0);
      result.several_in_a_row = result.several_in_a_row || one.documents.defined();
      ForwardContext context;
      context.batch = &one;
      context.training = true;
      ChainPass(engine.chain_run(), context, {row == 0, row + 1 == result.rows}).backward(1.0 / double(result.trained));
    }
    engine.export_gradients(
        [&](const TensorSpec& spec, const at::Tensor& value) { result.gradients[spec.name] = value.clone(); });
    return result;
  }

  void expect_equal(at::ScalarType type, double tolerance) const {
    const Result packed = run(true, type), separate = run(false, type);
    EXPECT_EQ(separate.rows, 10);
    EXPECT_LT(packed.rows, 6);
    EXPECT_TRUE(packed.several_in_a_row);
    EXPECT_FALSE(separate.several_in_a_row);
    EXPECT_EQ(packed.trained, separate.trained);
    ASSERT_EQ(packed.gradients.size(), separate.gradients.size());
    for (const auto& [name, gradient] : packed.gradients) {
      const at::Tensor& other = separate.gradients.at(name);
      EXPECT_GT(other.abs().max().item<double>(), 0) << name;
      EXPECT_LT(((gradient - other).abs().max() / other.abs().max()).item<double>(), tolerance) << name;
    }
  }

  fs::path folder_ = fs::temp_directory_path() / ("zero-packed-" + std::to_string(::getpid()));
};

TEST_F(PackedGradients, EqualThoseOfConversationsAloneInFp64) { expect_equal(at::kDouble, 1e-12); }
TEST_F(PackedGradients, EqualThoseOfConversationsAloneInFp32) { expect_equal(at::kFloat, 1e-5); }

}  // namespace
}  // namespace zero

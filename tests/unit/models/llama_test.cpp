// The decoder as a whole: against the golden cases, packed against separate, incremental against full.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "models/families/config_json.h"
#include "models/families/families.h"
#include "models/formats/safetensors.h"
#include "models/lora/lora.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

struct Golden {
  Model model;
  Batch batch;
  std::unique_ptr<SafetensorsFile> expect;
};

Golden load_golden(const std::string& name, const std::vector<std::string>& shards, const Batch& batch) {
  const std::string folder = std::string(ZERO_TEST_DATA) + "/" + name;
  std::ifstream in(folder + "/model/config.json");
  std::stringstream json;
  json << in.rdbuf();
  Golden golden{make_model(parse_model_config(json.str(), folder + "/model/config.json")), batch, nullptr};
  hold_parameters(golden.model, at::kFloat);
  std::vector<SafetensorsFile> files;
  for (const std::string& shard : shards) files.emplace_back(folder + "/model/" + shard);
  for (auto& unit : golden.model.units)
    for (Parameter& parameter : unit->parameters()) {
      std::int64_t row = 0;
      for (const TensorSpec& chunk : parameter.parts) {
        for (const SafetensorsFile& file : files)
          if (file.find(chunk.name)) parameter.tensor.narrow(0, row, chunk.shape[0]).copy_(file.read(chunk.name));
        row += chunk.shape[0];
      }
      parameter.tensor.set_requires_grad(true);
    }
  share_with_borrowers(golden.model);
  golden.expect = std::make_unique<SafetensorsFile>(folder + "/expect.safetensors");
  return golden;
}

/// The first `rows` windows of the case's tokens.
Batch golden_batch(const std::string& name, std::int64_t rows, std::int64_t length) {
  std::ifstream in(std::string(ZERO_TEST_DATA) + "/" + name + "/tokens.bin", std::ios::binary);
  std::vector<std::uint16_t> tokens(rows * length + 1);
  in.read(reinterpret_cast<char*>(tokens.data()), static_cast<std::streamsize>(tokens.size() * 2));
  EXPECT_TRUE(in.good());
  Batch batch{at::empty({rows, length}, at::kLong), at::empty({rows, length}, at::kLong), {}, {}};
  for (std::int64_t i = 0; i < rows * length; ++i) {
    batch.ids.data_ptr<std::int64_t>()[i] = tokens[i];
    batch.targets.data_ptr<std::int64_t>()[i] = tokens[i + 1];
  }
  return batch;
}

void agrees_with_golden(const std::string& name, const std::vector<std::string>& shards) {
  Golden golden = load_golden(name, shards, golden_batch(name, 12, 24));
  const at::Tensor expected_logits = golden.expect->read("logits");
  EXPECT_LT((run_logits(golden.model, golden.batch) - expected_logits).abs().max().item<double>(), 2e-5);
  const at::Tensor loss = run_loss(golden.model, golden.batch);
  const double tokens = static_cast<double>(golden.batch.ids.numel());
  EXPECT_NEAR(loss.item<double>() / tokens, golden.expect->read("loss").item<double>(), 1e-5);
  const auto grads = gradients(golden.model, loss, 1 / tokens);
  std::size_t compared = 0;
  for (const auto& [tensor, grad] : grads) {
    EXPECT_LT(deviation(grad, golden.expect->read("grad." + tensor)), 2e-5) << tensor;
    ++compared;
  }
  std::size_t expected = 0;
  for (const StoredTensor& stored : golden.expect->tensors()) expected += stored.name.rfind("grad.", 0) == 0;
  EXPECT_EQ(compared, expected);
}

TEST(Llama, AgreesWithTransformers) { agrees_with_golden("tiny", {"model.safetensors"}); }

TEST(Llama, AgreesWithTransformersTiedHeadDim8) {
  agrees_with_golden("tiny-tied-bf16-sharded", {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                                "model-00003-of-00003.safetensors"});
}

TEST(Llama, CountsParametersOnce) {
  ModelConfig config = small_config();
  const std::int64_t block = 32 + (64 + 32 + 32) * 32 + 32 * 64 + 32 + 2 * 48 * 32 + 32 * 48;
  EXPECT_EQ(make_model(config).numel(), 2 * 61 * 32 + 2 * block + 32);
  config.tie_word_embeddings = true;
  Model tied = make_model(config);
  EXPECT_EQ(tied.numel(), 61 * 32 + 2 * block + 32);
  tied.units[0]->parameters()[0].trainable = false;
  EXPECT_EQ(tied.trainable_numel(), 2 * block + 32);
}

at::Tensor tokens(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randint(61, shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kLong);
}

/// Three documents of 5, 3 and 4 tokens and two columns of padding in one row, against each document in a row of its
/// own.
void packed_equals_separate(Model model, double tolerance) {
  const at::ScalarType type = model.units[0]->parameters()[0].tensor.scalar_type();
  const std::vector<std::int64_t> lengths{5, 3, 4};
  const at::Tensor ids = tokens({1, 14}, 3), targets = tokens({1, 14}, 4);
  Batch packed{ids, targets.clone(), at::zeros({1, 14}, at::kLong), at::full({1, 14}, -1, at::kInt)};
  packed.targets.narrow(1, 12, 2).fill_(ignored_target);
  at::Tensor loss = at::zeros({}, type == at::kDouble ? at::kDouble : at::kFloat);
  std::int64_t begin = 0;
  std::vector<at::Tensor> logits;
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    const std::int64_t n = lengths[document];
    packed.positions.narrow(1, begin, n).copy_(at::arange(n));
    packed.documents.narrow(1, begin, n).fill_(static_cast<int>(document));
    const Batch alone{ids.narrow(1, begin, n).contiguous(), targets.narrow(1, begin, n).contiguous(), {}, {}};
    loss = loss + run_loss(model, alone);
    logits.push_back(run_logits(model, alone));
    begin += n;
  }
  const at::Tensor packed_loss = run_loss(model, packed);
  EXPECT_LT(deviation(packed_loss, loss), tolerance);
  EXPECT_LT(deviation(run_logits(model, packed).narrow(1, 0, 12), at::cat(logits, 1)), tolerance);
  const auto together = gradients(model, packed_loss), separate = gradients(model, loss);
  for (const auto& [name, grad] : together) EXPECT_LT(deviation(grad, separate.at(name)), tolerance) << name;
}

TEST(Llama, PackedEqualsSeparate) { packed_equals_separate(random_model(small_config()), 1e-12); }
TEST(Llama, PackedEqualsSeparateFp32) { packed_equals_separate(random_model(small_config(), at::kFloat), 1e-5); }

Model adapted_model(at::ScalarType type, bool dora) {
  Model model = make_model(small_config());
  LoraOptions options;
  options.target_modules = {"all-linear"};
  options.use_dora = dora;
  add_lora(model, options);
  return with_random_weights(std::move(model), type);
}

TEST(Llama, PackedEqualsSeparateWithAdapters) {
  for (const bool dora : {false, true}) {
    packed_equals_separate(adapted_model(at::kDouble, dora), 1e-12);
    packed_equals_separate(adapted_model(at::kFloat, dora), 1e-5);
  }
}

TEST(Llama, FrozenWeightsGetNoGradientAndChangeNoOther) {
  Model model = random_model(small_config());
  const Batch batch{tokens({2, 6}, 5), tokens({2, 6}, 6), {}, {}};
  const auto all = gradients(model, run_loss(model, batch));
  for (auto& unit : model.units)
    for (Parameter& parameter : unit->parameters()) parameter.tensor.set_requires_grad(false);
  Parameter& qkv = model.units[1]->parameters()[1];
  qkv.tensor.set_requires_grad(true);
  const auto some = gradients(model, run_loss(model, batch));
  EXPECT_EQ(some.size(), 3u);
  for (const auto& [name, grad] : some) EXPECT_TRUE(grad.equal(all.at(name))) << name;
}

TEST(Llama, GradientsAgreeWithFiniteDifferences) {
  ModelConfig config = small_config();
  config.tie_word_embeddings = true;
  config.rope_scaling = Llama3Scaling{2, 1, 4, 16};
  Model model = random_model(config);
  Batch batch{tokens({2, 7}, 7), tokens({2, 7}, 8), {}, {}};
  batch.targets.narrow(1, 0, 2).fill_(ignored_target);
  const auto grads = gradients(model, run_loss(model, batch));
  const at::NoGradGuard no_grad;
  for (auto& unit : model.units)
    for (Parameter& parameter : unit->parameters()) {
      at::Tensor first = parameter.tensor.narrow(0, 0, parameter.parts[0].shape[0]);
      const at::Tensor direction = random(first.sizes(), 99), before = first.clone();
      const auto loss_at = [&](double step) {
        first.copy_(before + step * direction);
        return run_loss(model, batch).item<double>();
      };
      const double slope = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
      first.copy_(before);
      const double expected = (grads.at(parameter.parts[0].name) * direction).sum().item<double>();
      EXPECT_NEAR(slope, expected, 1e-6 * std::max(1.0, std::abs(expected))) << parameter.parts[0].name;
    }
}

TEST(Llama, IncrementalEqualsFull) {
  Model model = random_model(small_config());
  const at::Tensor ids = tokens({2, 9}, 9);
  const at::Tensor full = run_logits(model, {ids, {}, {}, {}});
  KvCache cache(2, 9);
  for (const auto& [begin, size] : std::vector<std::pair<int, int>>{{0, 4}, {4, 1}, {5, 3}, {8, 1}}) {
    const at::Tensor logits = run_logits(model, {ids.narrow(1, begin, size).contiguous(), {}, {}, {}}, &cache);
    EXPECT_LT(deviation(logits, full.narrow(1, begin, size)), 1e-12) << begin;
  }
  cache.rewind(5);
  const at::Tensor again = run_logits(model, {ids.narrow(1, 5, 4).contiguous(), {}, {}, {}}, &cache);
  EXPECT_LT(deviation(again, full.narrow(1, 5, 4)), 1e-12);
  EXPECT_ANY_THROW(run_logits(model, {ids.narrow(1, 0, 1).contiguous(), {}, {}, {}}, &cache));
}

/// Prompts of 5 and 2 tokens in one batch, the shorter one padded on either side, then two more tokens each.
void padded_prompts(bool left) {
  Model model = random_model(small_config());
  const at::Tensor ids = tokens({2, 7}, 10);
  const std::vector<std::int64_t> lengths{5, 2};
  Batch prompts{at::zeros({2, 5}, at::kLong), {}, at::zeros({2, 5}, at::kLong), at::full({2, 5}, -1, at::kInt)};
  for (int row = 0; row < 2; ++row) {
    const std::int64_t n = lengths[row], begin = left ? 5 - n : 0;
    prompts.ids[row].narrow(0, begin, n).copy_(ids[row].narrow(0, 0, n));
    prompts.positions[row].narrow(0, begin, n).copy_(at::arange(n));
    prompts.documents[row].narrow(0, begin, n).zero_();
  }
  KvCache cache(2, 7);
  run_logits(model, prompts, &cache);
  for (int step = 0; step < 2; ++step) {
    Batch next{at::empty({2, 1}, at::kLong), {}, at::empty({2, 1}, at::kLong), {}};
    for (int row = 0; row < 2; ++row) {
      next.ids[row][0] = ids[row][lengths[row] + step];
      next.positions[row][0] = lengths[row] + step;
    }
    const at::Tensor logits = run_logits(model, next, &cache);
    for (int row = 0; row < 2; ++row) {
      const std::int64_t n = lengths[row] + step + 1;
      const at::Tensor alone = run_logits(model, {ids.narrow(0, row, 1).narrow(1, 0, n).contiguous(), {}, {}, {}});
      EXPECT_LT(deviation(logits[row][0], alone[0][n - 1]), 1e-12) << "row " << row << " step " << step;
    }
  }
}

TEST(Llama, GeneratesFromPromptsPaddedLeft) { padded_prompts(true); }
TEST(Llama, GeneratesFromPromptsPaddedRight) { padded_prompts(false); }

}  // namespace
}  // namespace zero::test

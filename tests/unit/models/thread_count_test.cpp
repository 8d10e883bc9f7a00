// With deterministic algorithms, a pass through a model has the same bits for any number of threads. job.reproducible =
// "ranks" promises it, and ranks of a node share its cores.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/json_text.h"
#include "models/families/config_json.h"
#include "models/lora/lora.h"
#include "models/nn/matmul_setting.h"
#include "tests/golden_families.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

constexpr std::int64_t length = 211;

/// So wide that LibTorch divides its work, by numbers that come out even for no number of threads.
ModelConfig wide_config(const std::string& name) {
  const std::string path = ZERO_TEST_DATA "/families/" + name + "/model/config.json";
  ModelConfig config = parse_model_config(read_text_file(path), path);
  config.hidden_size = 204;
  config.intermediate_size = 333;
  config.max_position_embeddings = 256;
  return config;
}

struct Case {
  std::string family;
  at::ScalarType type;
  const char* extra = "";  // adapters, or dropout
};

/// Loss and gradients by name.
std::map<std::string, at::Tensor> pass(Model& model) {
  const at::Tensor ids = at::randint(70, {1, length}, at::make_generator<at::CPUGeneratorImpl>(3), at::kLong);
  const Batch batch{ids, ids.roll(-1, 1).contiguous(), {}, {}};
  ForwardContext context;
  context.batch = &batch;
  context.training = true;
  context.seed = 5;
  const at::Tensor loss = model.units.back()->forward(run_to_head(model, context), context);
  auto found = gradients(model, loss, 1.0 / double(length));
  found["the loss"] = loss.detach();
  return found;
}

Model model_of(const Case& of) {
  ModelConfig config = wide_config(of.family);
  if (of.extra == std::string("dropout")) config.dropout = {0.1, 0.2, 0.1};
  Model model = make_model(config);
  if (*of.extra && !config.dropout.any()) {
    LoraOptions options;
    options.target_modules = {"all-linear"};
    options.dropout = 0.1;
    options.use_dora = of.extra == std::string("dora");
    add_lora(model, options);
  }
  return with_random_weights(std::move(model), of.type);
}

class ThreadCount : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { choose_deterministic_products(); }
  void TearDown() override {
    at::globalContext().setDeterministicAlgorithms(false, false);
    at::set_num_threads(threads_);
  }

 private:
  int threads_ = at::get_num_threads();
};

TEST_P(ThreadCount, ChangesNoBitOfAPass) {
  Model model = model_of(GetParam());
  at::set_num_threads(1);
  const auto expected = pass(model);
  ASSERT_TRUE(at::isfinite(expected.at("the loss")).all().item<bool>());
  std::set<std::string> others;
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    for (const auto& [name, value] : pass(model))
      if (!at::equal(value, expected.at(name))) others.insert(name);
  }
  EXPECT_THAT(others, ::testing::IsEmpty());
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& family : golden_families())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      all.push_back({family, type});
      if (family == "gpt2" || family == "olmo2") all.push_back({family, type, "dropout"});
      if (type != at::kHalf) continue;
      all.push_back({family, at::kFloat, "lora"});
      if (family != "gpt2") all.push_back({family, at::kFloat, "dora"});
    }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Families, ThreadCount, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.family + "_" + at::toString(info.param.type) + info.param.extra;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace zero::test

#include "models/generate/generator.h"
#include "models/families/families.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/formats/hf_weights.h"
#include "models/weight_source.h"

namespace zero {
namespace {

using Ids = Generator::Ids;

Model tiny_model() {
  const auto directory = std::make_shared<HfDirectory>(ZERO_TEST_DATA "/tiny/model");
  Model model = make_model(directory->config());
  hold_parameters(model, at::kFloat);
  HfWeights weights(directory);
  load_parameters(model, weights);
  return model;
}

/// The likeliest tokens one by one, everything computed anew for each.
Ids slow(Generator& generator, Ids ids, int count) {
  Ids made;
  for (int i = 0; i < count; ++i) {
    const at::Tensor logits = generator.logits(ids);
    made.push_back(static_cast<std::int32_t>(logits[0][-1].argmax().item<std::int64_t>()));
    ids.push_back(made.back());
  }
  return made;
}

TEST(Generator, LogitsAreThoseOfTransformers) {
  Model model = tiny_model();
  const SafetensorsFile expected(ZERO_TEST_DATA "/tiny/expect.safetensors");
  const at::Tensor logits_BTV = expected.read("logits");
  const File tokens = File::open(ZERO_TEST_DATA "/tiny/tokens.bin");
  const std::int64_t seq = logits_BTV.size(1);
  for (std::int64_t row = 0; row < logits_BTV.size(0); ++row) {
    std::vector<std::uint16_t> raw(static_cast<std::size_t>(seq));
    tokens.read_at(raw.data(), seq * 2, row * seq * 2);
    const at::Tensor mine = Generator(model).logits(Ids(raw.begin(), raw.end()));
    EXPECT_LT((mine[0] - logits_BTV[row]).abs().max().item<double>(), 1e-5);
  }
}

TEST(Generator, CacheAndBatchChangeNothing) {
  Model model = tiny_model();
  Generator generator(model);
  const std::vector<Ids> prompts{{1, 5, 9, 200, 17, 33}, {1}, {1, 400, 401}};
  std::vector<Ids> expected;
  for (const Ids& prompt : prompts) expected.push_back(slow(generator, prompt, 20));
  EXPECT_EQ(generator.generate(prompts, {.max_new_tokens = 20}), expected);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(generator.generate({prompts[i]}, {.max_new_tokens = 20}).front(), expected[i]);
}

TEST(Generator, APromptThatGoesOnFromTheLastOneIsTheSame) {
  Model model = tiny_model();
  Generator generator(model), fresh(model);
  Ids history{1, 7, 8};
  for (const Ids& more : {Ids{}, Ids{30, 31}, Ids{32}}) {
    history.insert(history.end(), more.begin(), more.end());
    const Ids made = generator.generate({history}, {.max_new_tokens = 7}).front();
    EXPECT_EQ(made, slow(fresh, history, 7));
    history.insert(history.end(), made.begin(), made.end());
  }
  for (const Ids& other : {Ids{1, 7, 9, 9}, Ids{1, 7}, Ids{4}, Ids{1, 7, 9, 9}})
    EXPECT_EQ(generator.generate({other}, {.max_new_tokens = 5}).front(), slow(fresh, other, 5));
}

TEST(Generator, StopsAtStopIdsAndAtTheEndOfTheContext) {
  Model model = tiny_model();
  Generator generator(model);
  const std::vector<Ids> prompts{{1, 5}, {1, 400, 401}};
  const auto free = generator.generate(prompts, {.max_new_tokens = 30});
  const std::int32_t stop = free[0][3];
  std::vector<Ids> streamed(2);
  const auto stopped = generator.generate(
      prompts, {.max_new_tokens = 30, .stop_ids = {stop}},
      [&](std::int64_t row, std::int32_t id) { streamed[static_cast<std::size_t>(row)].push_back(id); });
  EXPECT_EQ(streamed, stopped);
  for (std::size_t row = 0; row < 2; ++row) {
    Ids expected;
    for (const auto id : free[row]) {
      expected.push_back(id);
      if (id == stop) break;
    }
    EXPECT_EQ(stopped[row], expected);
  }
  const std::int64_t context = model.config.max_position_embeddings;
  const auto filled =
      generator.generate({Ids(static_cast<std::size_t>(context) - 3, 7), {1}}, {.max_new_tokens = 1000});
  EXPECT_EQ(filled[0].size(), 3u);
  EXPECT_EQ(static_cast<std::int64_t>(filled[1].size()), context - 1);
  EXPECT_TRUE(generator.generate({{1}}, {.max_new_tokens = 0}).front().empty());
}

TEST(Generator, ADrawDoesNotDependOnTheOtherRows) {
  Model model = tiny_model();
  const GenerateOptions options{.max_new_tokens = 20, .sampling = {.temperature = 1, .seed = 3}};
  const auto together = Generator(model).generate({{1, 5, 9}, {1, 400}}, options);
  EXPECT_EQ(Generator(model).generate({{1, 5, 9}}, options).front(), together.front());
}

TEST(Generator, BadPromptsAreRefused) {
  Model model = tiny_model();
  Generator generator(model);
  EXPECT_THROW(generator.generate({{}}, {}), InputError);
  EXPECT_THROW(generator.generate({{512}}, {}), InputError);
  EXPECT_THROW(generator.generate({{-1}}, {}), InputError);
  EXPECT_THROW(generator.generate({Ids(129, 1)}, {}), InputError);
  EXPECT_THROW(generator.logits(Ids(129, 1)), InputError);
  EXPECT_THROW(generator.generate({{1}}, {.sampling = {.top_p = 2}}), InputError);
}

}  // namespace
}  // namespace zero

#include "models/initial_weights.h"
#include "models/families/families.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "models/families/config_json.h"
#include "models/model.h"

namespace zero {
namespace {

TEST(Philox, AgreesWithThePublishedKnownAnswers) {
  const auto check = [](std::uint32_t counter, std::uint64_t key, std::array<std::uint32_t, 4> expected) {
    const U32x8 word = detail::splat(counter);
    const auto out = philox({word, word, word, word}, key);
    for (int i = 0; i < 4; ++i)
      for (int lane = 0; lane < 8; ++lane) EXPECT_EQ(out[i][lane], expected[i]);
  };
  check(0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  check(0xffffffff, ~std::uint64_t{0}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

at::Tensor normal(std::uint64_t seed, const std::string& name, std::int64_t begin, std::int64_t count) {
  at::Tensor out = at::empty({count}, at::kFloat);
  draw_normal(seed, name, begin, count, 1.0f, out.data_ptr<float>());
  return out;
}

TEST(InitialWeights, ARangeIsTheSameHoweverItIsCut) {
  const at::Tensor whole = normal(3, "w", 0, 10000);
  for (const std::int64_t chunk : {1, 7, 31, 32, 33, 1000, 4096}) {
    at::Tensor chunks = at::empty({10000}, at::kFloat);
    for (std::int64_t i = 0; i < 10000; i += chunk) {
      const std::int64_t n = std::min(chunk, 10000 - i);
      draw_normal(3, "w", i, n, 1.0f, chunks.data_ptr<float>() + i);
    }
    EXPECT_TRUE(chunks.equal(whole)) << chunk;
  }
  const std::int64_t far = std::int64_t{1} << 40;
  EXPECT_TRUE(normal(3, "w", far + 5, 100).equal(normal(3, "w", far, 105).narrow(0, 5, 100)));
}

TEST(InitialWeights, DrawsAreNormal) {
  const std::int64_t n = 8'000'000;
  const at::Tensor z = normal(1, "model.embed_tokens.weight", 0, n).to(at::kDouble);
  EXPECT_NEAR(z.mean().item<double>(), 0, 5 / std::sqrt(n));
  EXPECT_NEAR(z.pow(2).mean().item<double>(), 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(z.pow(3).mean().item<double>(), 0, 5 * std::sqrt(15.0 / n));
  EXPECT_NEAR(z.pow(4).mean().item<double>(), 3, 5 * std::sqrt(96.0 / n));
  // Kolmogorov and Smirnov: the largest distance of the two distribution functions; 1.95 / sqrt(n) is passed once in a
  // thousand
  const at::Tensor sorted = std::get<0>(z.sort());
  const at::Tensor theory = at::special_ndtr(sorted);
  const at::Tensor steps = at::arange(1, n + 1, at::kDouble) / n;
  EXPECT_LT((theory - steps).abs().max().item<double>(), 1.95 / std::sqrt(n));
  EXPECT_GT(z.abs().max().item<double>(), 4.8);
  EXPECT_LT(z.abs().max().item<double>(), 6.8);
  // neighbours and the two draws of a pair, which lie 8 apart
  for (const std::int64_t lag : {1, 8, 32})
    EXPECT_NEAR((z.narrow(0, 0, n - lag) * z.narrow(0, lag, n - lag)).mean().item<double>(), 0, 5 / std::sqrt(n));
}

TEST(InitialWeights, SeedsAndNamesGiveStreamsOfTheirOwn) {
  const std::int64_t n = 1'000'000;
  const at::Tensor a = normal(1, "a", 0, n);
  for (const at::Tensor& b : {normal(1, "b", 0, n), normal(2, "a", 0, n), normal(std::uint64_t{1} << 32, "a", 0, n)})
    EXPECT_NEAR((a * b).mean().item<float>(), 0, 5 / std::sqrt(n));
}

TEST(InitialWeights, UniformDrawsKeepTheirBound) {
  at::Tensor u = at::empty({1'000'000}, at::kFloat);
  draw_uniform(5, "lora_A", 0, u.numel(), 0.25f, u.data_ptr<float>());
  EXPECT_GE(u.min().item<float>(), -0.25f);
  EXPECT_LT(u.max().item<float>(), 0.25f);
  EXPECT_NEAR(u.to(at::kDouble).pow(2).mean().item<double>(), 0.0625 / 3, 1e-4);
}

TEST(InitialWeights, AModelStartsAsItsParametersSay) {
  Model model = make_model(preset_config("llama-tiny"));
  hold_parameters(model, at::kFloat);
  RandomWeights weights(model, 11);
  load_parameters(model, weights);
  for (const auto& unit : model.units)
    for (const auto& parameter : unit->parameters()) {
      if (parameter.parts.front().shape.size() == 1)
        EXPECT_TRUE(parameter.tensor.equal(at::ones_like(parameter.tensor)));
      else
        EXPECT_NEAR(parameter.tensor.std().item<double>(), 0.02, 0.001) << parameter.parts.front().name;
    }
  EXPECT_THROW(weights.check({{"model.norm.weight", {3}}}), InternalError);
}

TEST(InitialWeights, Gpt2DividesThoseOfResidualLayers) {
  for (const std::int64_t layers : {1, 8}) {
    const std::string file = R"({"model_type": "gpt2", "vocab_size": 64, "n_embd": 64, "n_head": 2, "n_layer": )" +
                             std::to_string(layers) + "}";
    Model model = make_model(parse_model_config(file, "config.json"));
    for (const auto& unit : model.units)
      for (const auto& parameter : unit->parameters()) {
        if (parameter.init != Init::normal) continue;
        const bool adds = parameter.parts.front().name.ends_with("c_proj.weight");
        EXPECT_DOUBLE_EQ(parameter.init_scale, adds ? 0.02 / std::sqrt(2.0 * double(layers)) : 0.02)
            << parameter.parts.front().name;
      }
  }
}

TEST(InitialWeights, OtherTypesAreTheSameDrawsRounded) {
  RandomWeights weights({{{"w", {300000}}, Init::normal, 0.02}}, 1);
  const at::Tensor single = at::empty({299990}, at::kFloat), half = at::empty({299990}, at::kBFloat16),
                   wide = at::empty({299990}, at::kDouble);
  for (const auto& out : {single, half, wide}) weights.read({"w", {300000}}, 3, 299990, out);
  EXPECT_TRUE(half.equal(single.to(at::kBFloat16)));
  EXPECT_TRUE(wide.equal(single.to(at::kDouble)));
}

TEST(InitialWeights, TheFirstDrawsNeverChange) {
  // so that a run can be repeated with a later version of the program
  const at::Tensor first = normal(0, "model.embed_tokens.weight", 0, 4);
  std::array<std::uint32_t, 4> bits{};
  std::memcpy(bits.data(), first.data_ptr<float>(), sizeof bits);
  EXPECT_EQ(bits, (std::array<std::uint32_t, 4>{3202725175, 3185264198, 3213580236, 3216069238}));
}

}  // namespace
}  // namespace zero

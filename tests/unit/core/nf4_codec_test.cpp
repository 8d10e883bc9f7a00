// A quantized group: what it decodes to does not depend on the shards, norms stay exact, and it is small.
#include <gtest/gtest.h>

#include "tests/unit/core/encoded_layout.h"

namespace zero {
namespace nf4_codec_test {

const std::vector<std::vector<TensorSpec>> parameters = {{{"norm", {96}}},
                                                         {{"q", {40, 96}}, {"k", {8, 96}}},
                                                         {{"second_norm", {96}}},
                                                         {{"odd", {7, 33}}},
                                                         {{"long", {64, 515}}}};

// `bound`: of the error, in units of the largest value that random numbers reach.
void expect_the_same_for_any_shards(bool quantize_scales, double bound) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const FlatLayout one(parameters, 1, nf4_block);
    const at::Tensor values = at::randn({one.numel()}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
    const at::Tensor want = encoded_and_decoded(one, 1, values, {type, quantize_scales}, one.numel());
    for (int shards = 1; shards <= 5; ++shards) {
      const FlatLayout layout(parameters, shards, nf4_block);
      at::Tensor flat = at::zeros({layout.numel()}, at::kFloat);
      flat.narrow(0, 0, one.numel()).copy_(values);
      for (const std::int64_t chunk : {64, 128, 1 << 20}) {
        const at::Tensor got = encoded_and_decoded(layout, shards, flat, {type, quantize_scales}, chunk);
        EXPECT_TRUE(at::equal(got.narrow(0, 0, one.used_numel()), want.narrow(0, 0, one.used_numel())))
            << shards << " shards, chunks of " << chunk;
      }
    }
    const at::Tensor error = (want.to(at::kFloat) - values.to(type).to(at::kFloat)).abs();
    for (const FlatTensor& tensor : one.tensors()) {
      const double worst = error.narrow(0, tensor.offset, tensor.spec.numel()).max().item<double>();
      if (tensor.spec.shape.size() == 1)
        EXPECT_EQ(worst, 0) << tensor.spec.name;
      else
        EXPECT_TRUE(worst > 0 && worst < bound) << tensor.spec.name << " " << worst;
    }
  }
}

TEST(Nf4Codec, GivesTheSameForAnyShardsAndChunks) { expect_the_same_for_any_shards(false, 0.8); }
TEST(Nf4Codec, GivesTheSameWithQuantizedScales) { expect_the_same_for_any_shards(true, 0.85); }

TEST(Nf4Codec, QuantizedScalesMoveNumbersALittle) {
  const FlatLayout layout({{{"w", {256, 1024}}}}, 1, nf4_block);
  const at::Tensor flat = at::randn({layout.numel()}, at::make_generator<at::CPUGeneratorImpl>(2), at::kFloat);
  const at::Tensor plain = encoded_and_decoded(layout, 1, flat, {at::kFloat, false}, layout.numel());
  const at::Tensor twice = encoded_and_decoded(layout, 1, flat, {at::kFloat, true}, layout.numel());
  const double error = (plain - flat).norm().item<double>(), more = (twice - flat).norm().item<double>();
  EXPECT_FALSE(at::equal(plain, twice));
  EXPECT_LT(std::abs(more / error - 1), 0.01);
}

TEST(Nf4Codec, HoldsMatricesInFourBitsAndAHalf) {
  const FlatLayout layout({{{"w", {2048, 1024}}}}, 4, nf4_block);
  EXPECT_EQ(Nf4Codec(layout, 4, {at::kBFloat16}).all_bytes(), 2048 * 1024 / 64 * 36);
}

TEST(Nf4Codec, HoldsThemInFourBitsAndAnEighthWithQuantizedScales) {
  const FlatLayout layout({{{"w", {2048, 1024}}}}, 4, nf4_block);
  const std::int64_t blocks = 2048 * 1024 / 64;
  EXPECT_EQ(Nf4Codec(layout, 4, {at::kBFloat16, true}).all_bytes(), blocks * 33 + blocks / 256 * 8);
}

}  // namespace nf4_codec_test
}  // namespace zero

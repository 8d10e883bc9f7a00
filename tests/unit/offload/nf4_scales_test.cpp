// Scales of NF4 blocks in 8 bits: the map, nearest entries, error bounds, groups without differences.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "offload/quantized/nf4_scales.h"

namespace zero {
namespace {

std::vector<float> random_scales(std::int64_t n) {
  const at::Tensor values = at::randn({n}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat).mul(0.3).exp();
  return {values.data_ptr<float>(), values.data_ptr<float>() + n};
}

TEST(Nf4Scales, MapRisesFromNearMinusOneToOne) {
  const auto& map = dynamic_map();
  EXPECT_TRUE(std::is_sorted(map.begin(), map.end()));
  EXPECT_EQ(std::adjacent_find(map.begin(), map.end()), map.end());
  EXPECT_EQ(map[127], 0);
  EXPECT_EQ(map[255], 1);
  EXPECT_NEAR(map[0], -(1 - 0.9 / 128), 1e-6);
  for (int i = 0; i < 127; ++i) EXPECT_EQ(map[i], -map[254 - i]);
}

TEST(Nf4Scales, TakeTheNearestEntry) {
  const std::vector<float> scales = random_scales(nf4_scale_group);
  const float mean = mean_scale(scales.data(), nf4_scale_group);
  const Nf4ScaleHeader header = scale_header(scales.data(), nf4_scale_group, mean);
  std::uint8_t codes[nf4_scale_group];
  float back[nf4_scale_group];
  encode_scales(scales.data(), nf4_scale_group, header, codes);
  decode_scales(codes, nf4_scale_group, header, back);
  for (int b = 0; b < nf4_scale_group; ++b) {
    const double scaled = (double(scales[b]) - mean) / header.largest;
    double least = 2;
    for (const float entry : dynamic_map()) least = std::min(least, std::abs(scaled - entry));
    EXPECT_NEAR(std::abs(scaled - dynamic_map()[codes[b]]), least, 1e-6) << b;
    // entries lie at most 0.9 / 64 apart; below the lowest one there is half a step more
    EXPECT_LE(std::abs(back[b] - scales[b]), header.largest * 0.9 / 128 * 1.001);
  }
}

TEST(Nf4Scales, AreExactForEqualValues) {
  const std::vector<float> scales(100, 0.7f);
  const Nf4ScaleHeader header = scale_header(scales.data(), 100, mean_scale(scales.data(), 100));
  std::uint8_t codes[100];
  float back[100];
  encode_scales(scales.data(), 100, header, codes);
  decode_scales(codes, 100, header, back);
  for (const float value : back) EXPECT_EQ(value, 0.7f);
}

TEST(Nf4Scales, MayBeCutAnywhere) {
  const std::vector<float> scales = random_scales(200);
  const Nf4ScaleHeader header = scale_header(scales.data(), 200, mean_scale(scales.data(), 200));
  std::uint8_t whole[200], cut[200];
  encode_scales(scales.data(), 200, header, whole);
  encode_scales(scales.data(), 77, header, cut);
  encode_scales(scales.data() + 77, 123, header, cut + 77);
  EXPECT_TRUE(std::equal(whole, whole + 200, cut));
}

}  // namespace
}  // namespace zero

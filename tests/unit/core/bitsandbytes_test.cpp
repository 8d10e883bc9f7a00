// Compares NF4 with bitsandbytes, to the bit: codes, scales and decoded values of tests/data/nf4.safetensors
// (made by make_nf4.py).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "offload/quantized/nf4.h"
#include "offload/quantized/nf4_scales.h"
#include "tests/unit/core/encoded_layout.h"

namespace zero {
namespace {

class Bitsandbytes : public ::testing::TestWithParam<std::string> {
 protected:
  at::Tensor read(const std::string& what) const { return file_.read(GetParam() + "." + what); }
  at::Tensor weight() const { return read("weight").to(at::kFloat).contiguous(); }

  SafetensorsFile file_{std::string(ZERO_TEST_DATA) + "/nf4.safetensors"};
};

TEST_P(Bitsandbytes, GivesTheSameCodesAndValues) {
  const at::Tensor values = weight(), codes = at::empty({values.numel() / 2}, at::kByte),
                   largest = at::empty({values.numel() / nf4_block}, at::kFloat);
  const Nf4Blocks blocks{codes.data_ptr<std::uint8_t>(), largest.data_ptr<float>(), largest.numel()};
  nf4_encode(values.data_ptr<float>(), blocks);
  EXPECT_TRUE(at::equal(codes, read("codes")));
  EXPECT_TRUE(at::equal(largest, read("absmax")));
  const at::Tensor decoded = at::empty({values.numel()}, at::kBFloat16);
  nf4_decode(blocks, decoded);
  EXPECT_TRUE(at::equal(decoded, read("plain").view({-1})));
}

TEST_P(Bitsandbytes, QuantizesScalesToTheSameCodes) {
  const at::Tensor largest = read("absmax"), want = read("scale_codes_nearest"), offset = read("offset"),
                   second = read("second_absmax");
  const float* values = largest.data_ptr<float>();
  const float mean = mean_scale(values, largest.numel());
  EXPECT_FLOAT_EQ(mean, offset.item<float>());  // which is summed in fp32 there
  for (std::int64_t begin = 0; begin < largest.numel(); begin += nf4_scale_group) {
    const std::int64_t count = std::min(nf4_scale_group, largest.numel() - begin);
    const Nf4ScaleHeader header = scale_header(values + begin, count, mean);
    EXPECT_FLOAT_EQ(header.largest, second[begin / nf4_scale_group].item<float>());
    const at::Tensor codes = at::empty({count}, at::kByte);
    encode_scales(values + begin, count, header, codes.data_ptr<std::uint8_t>());
    EXPECT_TRUE(at::equal(codes, want.narrow(0, begin, count)));
  }
}

// Its CPU library looks a scale up in a table of 65536 steps over [-1, 1]. A value within half a step of the middle
// between two entries may go to the other one.
TEST_P(Bitsandbytes, DiffersFromItsCpuTableByHalfAStepAtMost) {
  const at::Tensor nearest = read("scale_codes_nearest"), table = read("scale_codes_cpu"), largest = read("absmax"),
                   second = read("second_absmax");
  const double mean = read("offset").item<double>();
  const auto& map = dynamic_map();
  for (std::int64_t b = 0; b < nearest.numel(); ++b) {
    const int here = nearest[b].item<int>(), there = table[b].item<int>();
    if (here == there) continue;
    EXPECT_EQ(std::abs(here - there), 1);
    const double scaled = (largest[b].item<double>() - mean) / second[b / nf4_scale_group].item<double>();
    EXPECT_LT(std::abs(scaled - (double(map[here]) + map[there]) / 2), 1.0 / 65535) << b;
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, Bitsandbytes, ::testing::Values("q", "k"));

TEST(BitsandbytesMap, IsTheSame) {
  const at::Tensor want = SafetensorsFile(std::string(ZERO_TEST_DATA) + "/nf4.safetensors").read("dynamic_map");
  for (int i = 0; i < 256; ++i) EXPECT_EQ(dynamic_map()[i], want[i].item<float>()) << i;
}

// Two weights and a norm in one flat vector, cut into any number of shards.
TEST(BitsandbytesCodec, DecodesToTheSameValuesWhereverShardsAreCut) {
  const SafetensorsFile file(std::string(ZERO_TEST_DATA) + "/nf4.safetensors");
  for (int shards = 1; shards <= 5; ++shards) {
    const FlatLayout layout({{{"norm", {100}}}, {{"q", {64, 320}}, {"k", {20, 192}}}}, shards, nf4_block);
    const at::Tensor flat = at::zeros({layout.numel()}, at::kFloat);
    for (const FlatTensor& tensor : layout.tensors())
      if (tensor.spec.name != "norm")
        flat.narrow(0, tensor.offset, tensor.spec.numel()).copy_(file.read(tensor.spec.name + ".weight").view({-1}));
    const at::Tensor got = encoded_and_decoded(layout, shards, flat, {at::kBFloat16, true}, 1024);
    for (const FlatTensor& tensor : layout.tensors()) {
      if (tensor.spec.name == "norm") continue;
      const std::string& name = tensor.spec.name;
      const at::Tensor same = file.read(name + ".scale_codes_nearest").eq(file.read(name + ".scale_codes_cpu"));
      const at::Tensor mine = got.narrow(0, tensor.offset, tensor.spec.numel()).view({-1, nf4_block}),
                       theirs = file.read(name + ".double").view({-1, nf4_block});
      EXPECT_TRUE(at::equal(mine.index({same}), theirs.index({same}))) << name << ", " << shards << " shards";
      EXPECT_LT(same.logical_not().sum().item<int>(), 3);
    }
  }
}

}  // namespace
}  // namespace zero

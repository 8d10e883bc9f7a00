// Compares NF4 on a GPU with the host's, to the bit. Skipped without a GPU.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include <cmath>

#include "offload/quantized/device_nf4.h"
#include "tests/unit/core/encoded_layout.h"

namespace zero {
namespace {

const at::Device gpu(at::kCUDA, 0);

class Nf4OnDevice : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  }
};

/// Random numbers with blocks of zeros, of one value, of tiny and of huge ones, and exact middles between codes.
at::Tensor values_of(std::int64_t blocks) {
  at::Tensor x = at::randn({blocks, nf4_block}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat);
  x[0].zero_();
  if (blocks > 1) x[1].fill_(-0.25);
  if (blocks > 2) x[2].mul_(1e-30);
  if (blocks > 3) x[3].mul_(1e30);
  if (blocks > 4)
    for (int i = 0; i < 15; ++i) x[4][i] = (nf4_codes[i] + nf4_codes[i + 1]) / 2;
  if (blocks > 4) x[4].slice(0, 15).fill_(1);
  return x.view({-1});
}

struct Blocks {
  explicit Blocks(std::int64_t blocks, at::Device device = at::kCPU)
      : codes(at::zeros({blocks * nf4_block / 2}, at::TensorOptions().dtype(at::kByte).device(device))),
        largest(at::zeros({blocks}, codes.options().dtype(at::kFloat))) {}
  Nf4Blocks pointers() const { return {codes.data_ptr<std::uint8_t>(), largest.data_ptr<float>(), largest.numel()}; }
  at::Tensor codes, largest;
};

bool same_bits(const at::Tensor& on_device, const at::Tensor& host) {
  return at::equal(on_device.to(at::kCPU).view({-1}).view(at::kByte), host.view({-1}).view(at::kByte));
}

TEST_P(Nf4OnDevice, EncodesAndDecodesToTheHostsBits) {
  const DeviceNf4 device(gpu);
  for (const std::int64_t count : {1, 5, 17, 1000}) {
    const at::Tensor values = values_of(count);
    const Blocks want(count), got(count, gpu);
    nf4_encode(values.data_ptr<float>(), want.pointers());
    device.encode(values.to(gpu), got.pointers());
    EXPECT_TRUE(same_bits(got.codes, want.codes)) << count;
    EXPECT_TRUE(same_bits(got.largest, want.largest)) << count;
    const at::Tensor wanted = at::empty({count * nf4_block}, GetParam()),
                     decoded = at::empty_like(wanted, wanted.options().device(gpu));
    nf4_decode(want.pointers(), wanted);
    const at::Tensor bytes = at::cat({got.codes, got.largest.view(at::kByte)});
    device.decode(device.table_of({{0, 0, got.codes.numel()}}), bytes, decoded);
    EXPECT_TRUE(same_bits(decoded, wanted)) << count;
  }
}

TEST_P(Nf4OnDevice, DecodesQuantizedScalesToTheHostsBits) {
  const DeviceNf4 device(gpu);
  const std::int64_t count = 600;
  const Blocks blocks(count);
  nf4_encode(values_of(count).data_ptr<float>(), blocks.pointers());
  // The first group began 100 blocks before: 156 blocks, a whole group, the rest.
  const std::int64_t skipped = 100, ends[] = {156, 412, count};
  const float mean = mean_scale(blocks.largest.data_ptr<float>(), count);
  const at::Tensor headers = at::zeros({6}, at::kFloat), scale_codes = at::zeros({count}, at::kByte),
                   scales = at::zeros({count}, at::kFloat);
  for (std::int64_t g = 0, begin = 0; g < 3; begin = ends[g++]) {
    const float* largest = blocks.largest.data_ptr<float>() + begin;
    const Nf4ScaleHeader header = scale_header(largest, ends[g] - begin, mean);
    headers[2 * g] = header.largest;
    headers[2 * g + 1] = header.mean;
    encode_scales(largest, ends[g] - begin, header, scale_codes.data_ptr<std::uint8_t>() + begin);
    decode_scales(scale_codes.data_ptr<std::uint8_t>() + begin, ends[g] - begin, header,
                  scales.data_ptr<float>() + begin);
  }
  const at::Tensor wanted = at::empty({count * nf4_block}, GetParam()),
                   decoded = at::empty_like(wanted, wanted.options().device(gpu));
  nf4_decode({blocks.codes.data_ptr<std::uint8_t>(), scales.data_ptr<float>(), count}, wanted);
  const std::int64_t headers_at = blocks.codes.numel(), scales_at = headers_at + std::int64_t(headers.nbytes());
  const at::Tensor bytes = at::cat({blocks.codes, headers.view(at::kByte), scale_codes}).to(gpu);
  device.decode(device.table_of({{0, 0, scales_at, headers_at, skipped}}), bytes, decoded);
  EXPECT_TRUE(same_bits(decoded, wanted));
}

// Pieces of every kind, of one block and of many, in one launch.
TEST_P(Nf4OnDevice, DecodesAllPiecesOfATableAtOnce) {
  const DeviceNf4 device(gpu);
  std::vector<cuda::Nf4Run> runs;
  std::vector<at::Tensor> bytes, wanted;
  std::int64_t place = 0, first = 0;
  const auto add = [&](const at::Tensor& part) {
    bytes.push_back(part.view({-1}).view(at::kByte)), place += part.nbytes();
  };
  for (const std::int64_t count : {1, 7, 2, 65, 1}) {
    const Blocks blocks(count);
    nf4_encode(values_of(count).data_ptr<float>(), blocks.pointers());
    wanted.push_back(at::empty({count * nf4_block}, GetParam()));
    nf4_decode(blocks.pointers(), wanted.back());
    runs.push_back({first, place, place + blocks.codes.numel()});
    add(blocks.codes);
    add(blocks.largest);
    add(at::zeros({(16 - place % 16) % 16}, at::kByte));
    wanted.push_back(values_of(count).to(GetParam()));
    runs.push_back({first + count, place});
    add(wanted.back());
    first += 2 * count;
  }
  const at::Tensor decoded = at::empty({first * nf4_block}, at::TensorOptions().dtype(GetParam()).device(gpu));
  device.decode(device.table_of(runs), at::cat(bytes).to(gpu), decoded);
  EXPECT_TRUE(same_bits(decoded, at::cat(wanted)));
}

INSTANTIATE_TEST_SUITE_P(Types, Nf4OnDevice, testing::Values(at::kFloat, at::kBFloat16, at::kHalf));

// A group of a model: matrices whose ends are no ends of blocks, norms between them, cut anywhere.
TEST(Nf4CodecOnDevice, HoldsAndDecodesTheHostsBits) {
  if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  const std::vector<std::vector<TensorSpec>> parameters = {{{"norm", {96}}},
                                                           {{"q", {40, 96}}, {"k", {8, 96}}},
                                                           {{"second_norm", {96}}},
                                                           {{"odd", {7, 33}}},
                                                           {{"long", {640, 515}}}};
  for (const bool quantize_scales : {false, true})
    for (const int shards : {1, 3}) {
      const FlatLayout layout(parameters, shards, nf4_block);
      const at::Tensor flat = at::randn({layout.numel()}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
      const Nf4CodecOptions format{at::kBFloat16, quantize_scales};
      const at::Tensor want = encoded_and_decoded(layout, shards, flat, format, 4096);
      const at::Tensor got =
          encoded_and_decoded(layout, shards, flat.to(gpu), {format.type, quantize_scales, gpu}, 4096);
      EXPECT_TRUE(same_bits(got, want)) << shards << " shards" << (quantize_scales ? ", quantized scales" : "");
    }
}

}  // namespace
}  // namespace zero

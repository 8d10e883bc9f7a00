// A quantised group: what it decodes to does not depend on the shards, norms stay exact, and it is small.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "offload/nf4.h"
#include "zero/frozen_codec.h"

namespace zero {
namespace {

const std::vector<std::vector<TensorSpec>> parameters = {{{"norm", {96}}}, {{"q", {40, 96}}, {"k", {8, 96}}}, {{"second_norm", {96}}}, {{"odd", {7, 33}}}};

at::Tensor decoded(const FlatLayout& layout, int shards, const at::Tensor& flat, at::ScalarType type, std::int64_t chunk) {
  const FrozenCodec codec(layout, shards, type);
  const at::Tensor bytes = at::zeros({codec.all_bytes()}, at::kByte);
  const std::int64_t numel = layout.numel() / shards;
  for (int s = 0; s < shards; ++s)
    for (std::int64_t begin = 0; begin < numel; begin += chunk) {
      const std::int64_t count = std::min(chunk, numel - begin);
      codec.encode(s, begin, flat.narrow(0, s * numel + begin, count), bytes.narrow(0, s * codec.shard_bytes(), codec.shard_bytes()));
    }
  const at::Tensor full = at::empty({layout.numel()}, type);
  codec.decode(bytes, full);
  return full;
}

TEST(FrozenCodec, GivesTheSameForAnyShardsAndChunks) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (int shards = 1; shards <= 5; ++shards) {
      const FlatLayout layout(parameters, shards, nf4_block);
      const at::Tensor flat = at::randn({layout.numel()}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
      const at::Tensor want = decoded(layout, 1, flat, type, layout.numel());
      for (const std::int64_t chunk : {64, 128, 1 << 20}) EXPECT_TRUE(at::equal(decoded(layout, shards, flat, type, chunk), want)) << shards << " shards";
      const at::Tensor error = (want.to(at::kFloat) - flat.to(type).to(at::kFloat)).abs();
      for (const FlatTensor& tensor : layout.tensors()) {
        const double worst = error.narrow(0, tensor.offset, tensor.spec.numel()).max().item<double>();
        if (tensor.spec.shape.size() == 1)
          EXPECT_EQ(worst, 0) << tensor.spec.name;
        else
          EXPECT_TRUE(worst > 0 && worst < 0.8) << tensor.spec.name;
      }
    }
}

TEST(FrozenCodec, HoldsMatricesInFourBitsAndAHalf) {
  const FlatLayout layout({{{"w", {2048, 1024}}}}, 4, nf4_block);
  EXPECT_EQ(FrozenCodec(layout, 4, at::kBFloat16).all_bytes(), 2048 * 1024 / 64 * 36);
}

}  // namespace
}  // namespace zero

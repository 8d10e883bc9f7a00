// A group held in types of ggml. Decoded values do not depend on the shards, vectors stay exact, a source's own types
// come as they are, and the group is small.
#include "zero/core/buffers/ggml_format.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "models/ggml_values.h"

namespace zero {
namespace {

const std::vector<std::vector<TensorSpec>> parameters = {{{"norm", {96}}},
                                                         {{"q", {40, 96}}, {"k", {8, 96}}},
                                                         {{"second_norm", {70}}},
                                                         {{"odd", {7, 33}}, {"half", {3, 33}}},
                                                         {{"long", {64, 512}}}};

std::optional<GgmlType> mixed(const TensorSpec& tensor) {
  static const std::map<std::string, GgmlType> types{
      {"q", GgmlType::q8_0}, {"k", GgmlType::q4_0}, {"half", GgmlType::f16}, {"long", GgmlType::q8_0}};
  const auto found = types.find(tensor.name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

/// Ranks' parts written one after the other, and decoded together. Values are those of `flat`.
at::Tensor written_and_decoded(const FlatLayout& layout, int shards, const at::Tensor& flat, at::ScalarType type) {
  const GgmlFormat format(layout, shards, mixed, type);
  const at::Tensor all = at::zeros({format.all_numel()}, at::kByte);
  for (int s = 0; s < shards; ++s) {
    const at::Tensor part = flat.narrow(0, s * layout.shard_numel(), layout.shard_numel());
    WeightReader reader{s, layout.shard_numel(), at::kFloat, at::kCPU, {}, {}, {}};
    reader.read = [&](std::int64_t begin, const at::Tensor& values) {
      values.copy_(part.narrow(0, begin, values.numel()));
    };
    reader.read_as = [&](std::int64_t begin, std::int64_t count, GgmlType to, const at::Tensor& blocks) {
      to_ggml(part.narrow(0, begin, count), to, blocks.data_ptr<std::uint8_t>());
    };
    format.encode(reader, all.narrow(0, s * format.rest_numel(), format.rest_numel()));
  }
  const at::Tensor full = at::empty({layout.numel()}, type);
  format.decode(all, full);
  return full;
}

TEST(GgmlFormat, GivesTheSameForAnyShards) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const FlatLayout one(parameters, 1, q8_block);
    const at::Tensor values = at::randn({one.numel()}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
    const at::Tensor want = written_and_decoded(one, 1, values, type);
    for (int shards = 1; shards <= 5; ++shards) {
      const FlatLayout layout(parameters, shards, q8_block);
      at::Tensor flat = at::zeros({layout.numel()}, at::kFloat);
      flat.narrow(0, 0, one.numel()).copy_(values);
      const at::Tensor got = written_and_decoded(layout, shards, flat, type);
      EXPECT_TRUE(at::equal(got.narrow(0, 0, one.used_numel()), want.narrow(0, 0, one.used_numel()))) << shards;
    }
    const at::Tensor error = (want.to(at::kFloat) - values.to(type).to(at::kFloat)).abs();
    for (const FlatTensor& tensor : one.tensors()) {
      const double worst = error.narrow(0, tensor.offset, tensor.spec.numel()).max().item<double>();
      const std::string& name = tensor.spec.name;
      if (tensor.spec.shape.size() == 1 || name == "odd")
        EXPECT_EQ(worst, 0) << name;
      else
        EXPECT_TRUE(worst > 0 && worst < (name == "k" ? 0.6 : 0.04)) << name << " " << worst;
    }
  }
}

TEST(GgmlFormat, HoldsMatricesInTheBytesOfTheirBlocks) {
  const FlatLayout layout({{{"long", {2048, 1024}}}}, 4, q8_block);
  EXPECT_EQ(GgmlFormat(layout, 4, mixed, at::kBFloat16).all_bytes(), 2048 * 1024 / 32 * 34);
}

TEST(GgmlFormat, RowsOfWholeBlocksAreNeeded) {
  EXPECT_TRUE(has_whole_blocks({"w", {3, 64}}, GgmlType::q8_0));
  EXPECT_FALSE(has_whole_blocks({"w", {64, 48}}, GgmlType::q8_0));
  EXPECT_TRUE(has_whole_blocks({"w", {64, 48}}, GgmlType::f16));
  EXPECT_FALSE(has_whole_blocks({"w", {64}}, GgmlType::q8_0));
  const auto slice = [](std::int64_t rows, std::int64_t columns, int dim, int ranks) {
    return slice_of({"w", {rows, columns}}, dim, {dim == 0 ? rows : columns}, {ranks, 1});
  };
  EXPECT_TRUE(has_whole_blocks(slice(8, 128, 1, 4), GgmlType::q8_0));
  EXPECT_FALSE(has_whole_blocks(slice(8, 192, 1, 4), GgmlType::q8_0));  // 48 columns
  EXPECT_TRUE(has_whole_blocks(slice(128, 64, 0, 8), GgmlType::q8_0));
}

}  // namespace
}  // namespace zero

// Blocks of ggml: the bytes and the values of its reference, in every type, and rows that were made here before.
#include "models/ggml_values.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "models/formats/safetensors.h"
#include "models/weight_source.h"

namespace zero {
namespace ggml_values_test {

std::vector<GgmlType> block_types() {
  std::vector<GgmlType> types = ggml_types();
  std::erase_if(types, [](GgmlType type) { return ggml_block(type) == 1; });
  return types;
}

class GgmlBlocks : public ::testing::TestWithParam<GgmlType> {
 protected:
  at::Tensor tensor(const char* part) { return file_.read(name_ + part); }
  at::Tensor values() { return file_.read("values"); }
  SafetensorsFile file_{ZERO_TEST_DATA "/ggml_blocks.safetensors"};
  std::string name_ = ggml_name(GetParam());
};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.contiguous().view({-1}).view(at::kByte), b.contiguous().view({-1}).view(at::kByte));
}

TEST_P(GgmlBlocks, AreWrittenAsTheReferenceDoes) {
  if (GetParam() != GgmlType::q8_0 && GetParam() != GgmlType::q4_0) {  // read only
    EXPECT_THROW(to_ggml(values(), GetParam()), InternalError);
    return;
  }
  EXPECT_TRUE(same_bits(to_ggml(values(), GetParam()), tensor("")));
}

TEST_P(GgmlBlocks, AreReadAsTheReferenceDoesAndRoundedOnce) {
  const at::Tensor blocks = tensor("").contiguous(), want = tensor(".values");
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    const at::Tensor got = at::empty(want.sizes(), type);
    from_ggml(blocks.const_data_ptr<std::uint8_t>(), GetParam(), got);
    EXPECT_TRUE(same_bits(got, want.to(type))) << type;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GgmlBlocks, ::testing::ValuesIn(block_types()),
                         [](const auto& info) { return ggml_name(info.param); });

TEST(GgmlValues, GoThroughPlainTypesAsLibTorchRounds) {
  const at::Tensor values = at::randn({100}, at::kFloat);
  for (const auto& [type, as] :
       {std::pair{GgmlType::f32, at::kFloat}, {GgmlType::f16, at::kHalf}, {GgmlType::bf16, at::kBFloat16}}) {
    const at::Tensor bytes = to_ggml(values, type), back = at::empty({100}, at::kDouble);
    EXPECT_TRUE(same_bits(bytes, values.to(as)));
    from_ggml(bytes.const_data_ptr<std::uint8_t>(), type, back);
    EXPECT_TRUE(at::equal(back, values.to(as).to(at::kDouble)));
  }
}

/// Weights that hold one value everywhere but at one place.
struct OneOddValue : WeightSource {
  double odd = 0;
  void check(const std::vector<TensorSpec>&) override {}
  void read(const TensorSpec&, std::int64_t begin, std::int64_t count, const at::Tensor& out) override {
    out.fill_(0.5);
    if (begin <= 40 && 40 < begin + count) out[40 - begin] = odd;
  }
};

TEST(GgmlValues, BlocksOfWhatIsNotFiniteAreRefusedByTheTensorsName) {
  OneOddValue weights;
  for (const GgmlType type : {GgmlType::q8_0, GgmlType::q4_0})
    for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      weights.odd = odd;
      const at::Tensor out = at::empty({ggml_bytes(type, 32)}, at::kByte);
      EXPECT_NO_THROW(weights.read_as({"model.x.weight", {64}}, type, 0, 32, out));
      try {
        weights.read_as({"model.x.weight", {64}}, type, 32, 32, out);
        ADD_FAILURE() << ggml_name(type) << " took " << odd;
      } catch (const InputError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("model.x.weight: holds values that are not finite"));
      }
    }
}

}  // namespace ggml_values_test
}  // namespace zero

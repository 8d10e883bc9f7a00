#include "models/formats/safetensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/json_text.h"
#include "models/formats/safetensors_writer.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

TEST(Safetensors, ReadsAFileOfTransformers) {
  const SafetensorsFile file(ZERO_TEST_DATA "/tiny/model/model.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const StoredTensor* head = file.find("lm_head.weight");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->dtype, "F32");
  EXPECT_EQ(head->shape, (std::vector<std::int64_t>{512, 64}));
  const at::Tensor whole = file.read("lm_head.weight");
  const at::Tensor part = at::empty({100});
  file.read("lm_head.weight", 777, 100, part);
  EXPECT_TRUE(part.equal(whole.view({-1}).narrow(0, 777, 100)));
  EXPECT_FALSE(file.find("lm_head"));
}

TEST(Safetensors, EveryFloatTypeComesBackInEveryOther) {
  const TemporaryFolder folder;
  const at::Tensor values = at::arange(-4000, 4001, at::kDouble) / 16;  // exact in all four
  std::vector<SafetensorsSpec> specs;
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf})
    specs.push_back({c10::toString(type), type, {values.numel()}});
  SafetensorsWriter writer(folder / "x", specs);
  const at::Tensor exact = at::where((values * 16).remainder(64).eq(0), values, at::zeros({}, at::kDouble));
  for (std::size_t i = 0; i < specs.size(); ++i) writer.append(exact);
  writer.finish();
  const SafetensorsFile file(folder / "x");
  for (const auto& spec : specs) {
    EXPECT_TRUE(file.read(spec.name).to(at::kDouble).equal(exact)) << spec.name;
    for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
      const at::Tensor out = at::full({1000}, 9, type);
      file.read(spec.name, 3001, 1000, out);
      EXPECT_TRUE(out.to(at::kDouble).equal(exact.narrow(0, 3001, 1000))) << spec.name;
    }
  }
}

TEST(Safetensors, PiecesMayBeCutAnywhere) {
  const TemporaryFolder folder;
  const std::vector<SafetensorsSpec> specs{{"a", at::kFloat, {3, 5}},
                                           {"none", at::kFloat, {0, 4}},
                                           {"b", at::kFloat, {7}},
                                           {"s", at::kFloat, {}},
                                           {"last", at::kFloat, {0}}};
  const at::Tensor all = at::arange(23, at::kFloat);
  for (const int chunk : {1, 2, 7, 16, 23}) {
    SafetensorsWriter writer(folder / "x", specs);
    for (int i = 0; i < 23; i += chunk) writer.append(all.narrow(0, i, std::min(chunk, 23 - i)));
    writer.finish();
    const SafetensorsFile file(folder / "x");
    EXPECT_TRUE(file.read("a").equal(all.narrow(0, 0, 15).view({3, 5})));
    EXPECT_TRUE(file.read("b").equal(all.narrow(0, 15, 7)));
    EXPECT_EQ(file.read("s").item<float>(), 22);
    EXPECT_EQ(file.read("none").sizes(), (std::vector<std::int64_t>{0, 4}));
  }
}

TEST(Safetensors, AnUnfinishedFileLeavesNothing) {
  const TemporaryFolder folder;
  {
    SafetensorsWriter writer(folder / "x", {{"a", at::kFloat, {4}}});
    writer.append(at::zeros({3}));
    EXPECT_THROW(writer.finish(), InternalError);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  SafetensorsWriter writer(folder / "x", {{"a", at::kFloat, {4}}});
  writer.append(at::zeros({4}));
  EXPECT_THROW(writer.append(at::zeros({1})), InternalError);
  writer.finish();
  EXPECT_TRUE(std::filesystem::exists(folder / "x"));
}

TEST(Safetensors, AFileThatShrinksIsAnErrorAndNoCrash) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "x", {{"a", at::kFloat, {1 << 20}}});
  writer.append(at::zeros({1 << 20}));
  writer.finish();
  const SafetensorsFile file(folder / "x");
  std::filesystem::resize_file(folder / "x", 1 << 20);
  const at::Tensor out = at::empty({1 << 20});
  EXPECT_THROW(file.read("a", 0, 1 << 20, out), InputError);
  EXPECT_THROW(SafetensorsFile again(folder / "x"), InputError);
}

TEST(Safetensors, IntegersComeUnconvertedOrNotAtAll) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "x", {{"ids", at::kLong, {4}}, {"bytes", at::kByte, {3}}}, {});
  writer.append(at::arange(4, at::kLong));
  writer.append(at::arange(3, at::kByte));
  writer.finish();
  const SafetensorsFile file(folder / "x");
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_TRUE(file.read("ids").equal(at::arange(4, at::kLong)));
  EXPECT_TRUE(file.read("bytes").equal(at::arange(3, at::kByte)));
  EXPECT_THROW(file.read("ids", 0, 4, at::empty({4}, at::kFloat)), InputError);
}

}  // namespace
}  // namespace zero

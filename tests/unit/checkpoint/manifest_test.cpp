#include "zero/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

Manifest example() {
  Manifest manifest;
  manifest.run.settings = {{"optimizer.betas", "[0.9, 0.95]"}, {"data.train", "7 bytes, ab"}};
  manifest.run.configuration = "[job]\noutput_dir = \"ü\"\n";
  manifest.run.directory = "/somewhere";
  manifest.run.model_config = "{}";
  manifest.run.ranks = 3;
  manifest.run.threads = 2;
  manifest.run.processor = "A processor";
  manifest.run.sources = {{"base/config.json", "0123"}, {"chat_template", "4567"}};
  manifest.position = {12,
                       (std::int64_t{1} << 53) + 1,
                       7,
                       1.0 / 3,
                       11,
                       LossScaleState{1024, 5, 1},
                       {{4, 11, 15}, 1, 2, 16},
                       "{\"step\":12}\n",
                       "{\"step\":13}"};
  manifest.groups = {
      {{{{"w", {2, 3}}, 0, 0}, {{"b", {3}}, 32, 0}}, 64, {{"master"}, {"absmax", at::kFloat, 256}}, "lion"},
      {{{{"d:", {1}}, 0, 0}}, 1, {{"d", at::kDouble}}},
      {{{{"f", {2}}, 0, 0}}, 2, {{"frozen", at::kBFloat16}}}};
  manifest.files = {{"rank-00000.states", {{0, 0, 35}}, {8192, 0xfedcba9876543210}}};
  return manifest;
}

std::string refusal(const std::string& content) {
  try {
    parse_manifest(content, "m.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Manifest, IsNeitherWrittenNorReadBeyond64MiB) {
  Manifest manifest = example();
  manifest.run.configuration.assign(std::size_t(Manifest::most_bytes), '#');
  EXPECT_THAT(message_of<Error>([&] { format_manifest(manifest); }), ::testing::HasSubstr("at most 67108864 are read"));
  const TemporaryFolder folder;
  folder.write("manifest.json", "");
  std::filesystem::resize_file(folder / "manifest.json", std::uintmax_t(Manifest::most_bytes) + 1);
  FileCalls calls;
  EXPECT_THAT(message_of<Error>([&] { read_manifest(calls, folder.path()); }),
              ::testing::HasSubstr("manifest.json: has more than 67108864 bytes"));
}

TEST(Manifest, ReadsBackWhatItWrote) {
  const Manifest manifest = example(), back = parse_manifest(format_manifest(manifest), "m.json");
  EXPECT_EQ(back.position, manifest.position);
  EXPECT_EQ(back.run.settings, manifest.run.settings);
  EXPECT_EQ(back.run.threads, 2);
  EXPECT_EQ(back.run.processor, "A processor");
  EXPECT_EQ(back.run.sources, manifest.run.sources);
  EXPECT_EQ(back.run.configuration, manifest.run.configuration);
  EXPECT_EQ(back.files[0].mark, manifest.files[0].mark);
  EXPECT_EQ(back.files[0].sections, manifest.files[0].sections);
  EXPECT_EQ(back.groups[0].tensors[1].spec.name, "b");
  EXPECT_EQ(back.groups[0].tensors[1].offset, 32);
  EXPECT_EQ(back.groups[0].states, manifest.groups[0].states);
  EXPECT_EQ(back.groups[0].optimizer, "lion");
  EXPECT_EQ(back.groups[1].optimizer, "");
  EXPECT_EQ(format_manifest(back), format_manifest(manifest));
}

TEST(Manifest, NamesItsModelsWhereTheyHaveNamesOrTypes) {
  Manifest manifest = example();
  EXPECT_EQ(format_manifest(manifest).find("models"), std::string::npos);
  manifest.models = {{"critic", "CriticImpl", 12}, {"generator", "", 4}};
  const Manifest back = parse_manifest(format_manifest(manifest), "m.json");
  EXPECT_EQ(back.models, manifest.models);
  manifest.models[0].updates = -1;
  EXPECT_NE(refusal(format_manifest(manifest)), "");
}

TEST(Manifest, OmitsSkippedStepsIfThereAreNone) {
  Manifest manifest = example();
  EXPECT_NE(format_manifest(manifest).find("\"passed\":{\"steps\":[4,11,15]"), std::string::npos);
  manifest.position.passed = {};
  EXPECT_EQ(format_manifest(manifest).find("passed"), std::string::npos);
  EXPECT_EQ(parse_manifest(format_manifest(manifest), "m.json").position.passed, PassedSteps());
}

TEST(Manifest, ADirectoryMayHaveAnyBytes) {
  for (const char* name : {"/plain/100%41", "/ü", "/\xff%\xc3/a", ""}) {
    Manifest manifest = example();
    manifest.run.directory = name;
    EXPECT_EQ(parse_manifest(format_manifest(manifest), "m.json").run.directory, name);
  }
}

TEST(Manifest, EveryByteCounts) {
  const std::string good = format_manifest(example());
  ASSERT_EQ(refusal(good), "");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = char(bad[i] ^ 1);
    EXPECT_NE(refusal(bad), "") << i;
  }
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_NE(refusal(good.substr(0, length)), "") << length;
  for (const char more : {'\n', ' ', '\0'}) EXPECT_NE(refusal(good + more), "");
}

TEST(Manifest, ContentsThatContradictEachOtherAreRefused) {
  const auto refused = [](const std::function<void(Manifest&)>& spoil) {
    Manifest manifest = example();
    spoil(manifest);
    return refusal(format_manifest(manifest)) != "";
  };
  EXPECT_TRUE(refused([](Manifest& m) { m.position.passed.steps = {4, 3}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].name = "../states"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].sections[0].group = 1; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].sections[0].count = 65; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].sections[0].begin = -1; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.groups[0].tensors[1].offset = 62; }));
  EXPECT_TRUE(refused([](Manifest& m) {
    m.groups[0].tensors[1].spec.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  }));
  EXPECT_TRUE(refused([](Manifest& m) { m.groups[0].states.clear(); }));
  EXPECT_TRUE(refused([](Manifest& m) { m.groups[0].states[1].grain = 0; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.groups[0].states[1].grain = 3; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].sections[0] = {0, 5, 3}; }));  // in the middle of a block
}

// Sums of its numbers must not leave 64 bits.
TEST(Manifest, NumbersThatNoRunReachesAreRefused) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  const auto refused = [](const std::function<void(Manifest&)>& spoil) {
    Manifest manifest = example();
    spoil(manifest);
    return refusal(format_manifest(manifest)) != "";
  };
  EXPECT_TRUE(refused([](Manifest& m) { m.position.tokens = huge; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.position.updates = -1; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.position.loss_scale->clean_steps = -1; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].mark.bytes = -1; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].mark.bytes = huge; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.groups[2].numel = huge; }));
  EXPECT_TRUE(refused([](Manifest& m) {
    m.groups[2].numel = huge >> 10;
    m.groups[2].states = {{"a", at::kDouble}, {"b", at::kDouble}};
    m.chunk_elements = 256;
    m.files[0].sections.assign(100, {2, 0, huge >> 10});
  }));
}

// Values of other types are not taken for numbers, however the library would convert them.
TEST(Manifest, NumbersMustBeWhole) {
  const std::string good = format_manifest(example());
  for (const auto& [what, other] :
       {std::pair<std::string, std::string>{"\"ranks\":3", "\"ranks\":1e308"},
        {"\"ranks\":3", "\"ranks\":4294967299"},
        {"\"ranks\":3", "\"ranks\":true"},
        {"\"shape\":[2,3]", "\"shape\":[2,3.0]"},
        {"\"steps\":12", "\"steps\":1e19"},
        {"\"version\":2", "\"version\":" + std::string(5000, '[') + std::string(5000, ']')}}) {
    std::string bad = good;
    ASSERT_NE(bad.find(what), bad.npos) << what;
    bad.replace(bad.find(what), what.size(), other);
    bad.replace(13, 16, 16, '0');
    char sum[17];
    std::snprintf(sum, sizeof sum, "%016llx",
                  static_cast<unsigned long long>(checksum_of(bad + "\n" + std::to_string(bad.size()))));
    bad.replace(13, 16, sum);
    EXPECT_NE(refusal(bad), "") << what;
    EXPECT_EQ(refusal(bad).find("checksum does not agree"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace zero

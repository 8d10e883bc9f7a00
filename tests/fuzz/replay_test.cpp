// Every input that is kept, through its target: what once was a finding must be none again, without Clang.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "base/json_text.h"
#include "base/log.h"
#include "tests/fuzz/file_changes.h"
#include "tests/fuzz/fuzz_target.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> inputs_of(const FuzzTarget& target) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(ZERO_FUZZ_CORPUS) / target.name()))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class FuzzCorpus : public ::testing::TestWithParam<const FuzzTarget*> {
 protected:
  FuzzCorpus() { start_log(0, 1, LogLevel::error); }
};

TEST_P(FuzzCorpus, HoldsNoFinding) {
  const std::vector<std::string> paths = inputs_of(*GetParam());
  ASSERT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    std::cout << path << std::endl;  // the last one where the program ends
    std::string refusal;
    EXPECT_NO_THROW(refusal = GetParam()->run(read_text_file(path)));
    if (fs::path(path).filename().string().starts_with("finding-")) continue;
    EXPECT_EQ(refusal, "") << "a first input, which is to get far";
  }
}

// A few of the changes that the fuzzer makes, the same ones at every run.
TEST_P(FuzzCorpus, ChangedHoldsNoFinding) {
  const auto as_it_is = [](const std::string& content) { return content; };
  for (const std::string& path : inputs_of(*GetParam())) {
    std::string input = read_text_file(path);
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      input = changed_input(*GetParam(), input, seed, as_it_is);
      EXPECT_NO_THROW(GetParam()->run(input)) << path << ", change " << seed;
    }
  }
}

TEST_P(FuzzCorpus, FilesOfAnInputAreFound) {
  const FuzzTarget& target = *GetParam();
  FuzzFiles files;
  for (const FuzzTarget::Part& part : target.parts()) files[part.name] = "a\n=\n\n" + part.name + "\n";
  EXPECT_EQ(target.files_of(target.input_of(files)), files);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, ::testing::ValuesIn(FuzzTarget::all()),
                         [](const auto& info) { return info.param->name(); });

}  // namespace
}  // namespace zero

#include "zero/output/shared_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "comm/sim/sim_world.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

struct QuickCalls final : FileCalls {
  void pause(std::chrono::milliseconds) override {}
};

/// Ranks see these directories under one name. Returns their message.
std::string told(const std::vector<std::string>& directories) {
  std::vector<std::string> words(directories.size());
  SimWorld(int(directories.size())).run([&](Communicator& ranks, int rank) {
    QuickCalls calls;
    words[std::size_t(rank)] = why_not_shared(directories[std::size_t(rank)], ranks, calls).value_or("");
  });
  for (const std::string& word : words) EXPECT_EQ(word, words.front());
  return words.front();
}

TEST(SharedDirectory, RanksThatDoNotSeeItAreNamed) {
  const TemporaryFolder folder;
  const std::string one = folder.path("one"), other = folder.path("other"), absent = folder.path("absent");
  std::filesystem::create_directories(one);
  std::filesystem::create_directories(other);
  EXPECT_EQ(told({one, one, one}), "");
  EXPECT_EQ(told({one, absent, other, absent}), "is absent on ranks 1, 3 and another one on rank 2");
  EXPECT_TRUE(std::filesystem::is_empty(one));
}

TEST(SharedDirectory, ARunThatNeedsItIsRefused) {
  const TemporaryFolder folder;
  const std::string one = folder.path("one"), absent = folder.path("absent");
  std::filesystem::create_directories(one);
  const std::string said = message_of<InputError>([&] {
    SimWorld(2).run([&](Communicator& ranks, int rank) {
      QuickCalls calls;
      require_shared(rank == 0 ? one : absent, ranks, calls);
    });
  });
  EXPECT_THAT(said,
              ::testing::HasSubstr(" is absent on rank 1, and every rank writes its part of a checkpoint there: "));
}

}  // namespace
}  // namespace zero

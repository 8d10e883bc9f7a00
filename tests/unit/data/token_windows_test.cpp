#include "zero/data/text/token_windows.h"

#include <gmock/gmock.h>

#include <numeric>

#include "base/error.h"
#include "comm/sim/sim_world.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint16_t> count_up(int n, int first = 0) {
  std::vector<std::uint16_t> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), static_cast<std::uint16_t>(first));
  return ids;
}

TEST(TokenFile, ReadsBothWidthsAndSkipsTheHeader) {
  const TemporaryFolder folder;
  const TokenFile narrow(folder.write_ids("a.bin", count_up(5)), TokenWidth::uint16);
  const TokenFile wide(folder.write_ids<std::uint32_t>("b.bin", {7, 70000, 4000000000U}), TokenWidth::uint32,
                       {.begin = 4});
  std::int64_t ids[3];
  narrow.read(2, 3, ids);
  EXPECT_THAT(ids, ElementsAre(2, 3, 4));
  ASSERT_EQ(wide.size(), 2);
  wide.read(0, 2, ids);
  EXPECT_EQ(ids[0], 70000);
  EXPECT_EQ(ids[1], 4000000000);
}

TEST(TokenFile, RefusesMissingEmptyAndCutFiles) {
  const TemporaryFolder folder;
  const auto open = [](const std::string& path, TokenWidth type) {
    return message_of<InputError>([&] { TokenFile(path, type); });
  };
  EXPECT_THAT(open(folder.path("none.bin"), TokenWidth::uint16), HasSubstr("none.bin"));
  EXPECT_THAT(open(folder.write("empty.bin", ""), TokenWidth::uint16), HasSubstr("is empty"));
  EXPECT_THAT(open(folder.write("odd.bin", "abc"), TokenWidth::uint16),
              HasSubstr("3 bytes, which is no multiple of 2"));
  EXPECT_THAT(open(folder.write("six.bin", "abcdef"), TokenWidth::uint32), HasSubstr("no multiple of 4"));
  EXPECT_THAT(open(folder.path(""), TokenWidth::uint16), HasSubstr("is no regular file"));
  EXPECT_THROW(token_width_of("int16"), InputError);
}

TEST(TokenFile, SaysThatAFileWasCutAndWarnsOfOneThatWasWrittenTo) {
  const TemporaryFolder folder;
  const std::string path = folder.write_ids("a.bin", count_up(5000));
  const TokenFile cut(path, TokenWidth::uint16);
  std::int64_t ids[100];
  cut.read(4000, 100, ids);
  std::filesystem::resize_file(path, 200);
  EXPECT_THAT(message_of<InputError>([&] { cut.read(4000, 100, ids); }), HasSubstr("a.bin: ends at byte 8000"));
  EXPECT_THAT(message_of<InputError>([&] { cut.find_beyond(6000, 0, 5000); }), HasSubstr("a.bin: ends at byte 200"));
  const TokenFile other(folder.write_ids("b.bin", count_up(5000)), TokenWidth::uint16);
  std::fstream(folder.path("b.bin"), std::ios::in | std::ios::out | std::ios::binary).write("xy", 2);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) other.read(4000, 100, ids);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("b.bin: was written to while the run reads it"));
  EXPECT_EQ(told.find("b.bin"), told.rfind("b.bin"));
}

TEST(TokenFile, FindsTheFirstIdThatIsTooLargeInAnyBlock) {
  const TemporaryFolder folder;
  std::vector<std::uint32_t> ids(600000, 7);
  ids[300001] = ids[500000] = 9;
  const TokenFile file(folder.write_ids("a.bin", ids), TokenWidth::uint32);
  EXPECT_EQ(file.find_beyond(10, 0, 600000), -1);
  EXPECT_EQ(file.find_beyond(9, 0, 600000), 300001);
  EXPECT_EQ(file.find_beyond(9, 300002, 600000), 500000);
  EXPECT_EQ(file.find_beyond(9, 0, 300001), -1);
  EXPECT_EQ(file.find_beyond(9, 5, 5), -1);
}

std::vector<TokenFile> open_two(const TemporaryFolder& folder) {
  std::vector<TokenFile> files;
  files.emplace_back(folder.path("a.bin"), TokenWidth::uint16);
  files.emplace_back(folder.path("b.bin"), TokenWidth::uint16);
  return files;
}

// Tokens 0 .. 12 in two files.
std::vector<TokenFile> two_files(const TemporaryFolder& folder) {
  folder.write_ids("a.bin", count_up(7));
  folder.write_ids("b.bin", count_up(6, 7));
  return open_two(folder);
}

TEST(TokenWindows, OverlapByOneTokenAndCrossFiles) {
  const TemporaryFolder folder;
  const TokenWindows windows(two_files(folder), 5, PartialWindow::drop);
  ASSERT_EQ(windows.size(), 2);  // 12 targets, 5 a window
  EXPECT_THAT(windows.row(0).ids, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(windows.row(0).targets, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(windows.row(1).ids, ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(windows.row(1).targets, ElementsAre(6, 7, 8, 9, 10));
  EXPECT_EQ(windows.trained_tokens(1), 5);
  EXPECT_THROW(windows.row(2), InternalError);
}

TEST(TokenWindows, KeepTheShorterTailForValidation) {
  const TemporaryFolder folder;
  const TokenWindows windows(two_files(folder), 5, PartialWindow::keep);
  ASSERT_EQ(windows.size(), 3);
  EXPECT_THAT(windows.row(2).ids, ElementsAre(10, 11));
  EXPECT_THAT(windows.row(2).targets, ElementsAre(11, 12));
  EXPECT_EQ(windows.trained_tokens(2), 2);
}

TEST(TokenWindows, AnExactFitHasNoTail) {
  const TemporaryFolder folder;
  for (const PartialWindow tail : {PartialWindow::drop, PartialWindow::keep})
    EXPECT_EQ(TokenWindows(two_files(folder), 6, tail).size(), 2);
}

TEST(TokenWindows, RefuseFilesTooShortForOneRow) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<InputError>([&] { TokenWindows(two_files(folder), 13, PartialWindow::drop); }),
              HasSubstr("have 13 tokens, too few for one row: at least 14"));
  EXPECT_EQ(TokenWindows(two_files(folder), 13, PartialWindow::keep).size(), 1);
}

TEST(CheckTokenIds, NamesFileAndOffsetOnEveryRankWhicheverRankFindsIt) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> ids = count_up(20000);
  ids[12345] = 40000;
  ids[19000] = 50000;
  two_files(folder);
  folder.write_ids("big.bin", ids);
  for (const int ranks : {1, 2, 3, 4}) {
    std::vector<std::string> messages(static_cast<std::size_t>(ranks));
    SimWorld(ranks).run([&](Communicator& comm, int rank) {
      std::vector<TokenFile> files = open_two(folder);
      files.emplace_back(folder.path("big.bin"), TokenWidth::uint16);
      check_token_ids(files, 50001, comm);
      messages[static_cast<std::size_t>(rank)] = message_of<InputError>([&] { check_token_ids(files, 32000, comm); });
    });
    for (const std::string& message : messages)
      EXPECT_THAT(message, HasSubstr("token 12345 (byte 24690): id 40000 is beyond the model's vocabulary of 32000"));
  }
}

TEST(CheckTokenIds, TakesTheLastIdOfTheVocabulary) {
  const TemporaryFolder folder;
  std::vector<TokenFile> files = two_files(folder);
  SimWorld(1).run([&](Communicator& comm, int) {
    check_token_ids(files, 13, comm);
    EXPECT_THROW(check_token_ids(files, 12, comm), InputError);
  });
}

}  // namespace
}  // namespace zero

#include "zero/data/examples/json_lines.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/unit/message_of.h"

namespace zero {
namespace {

using ::testing::HasSubstr;
using Numbered = std::vector<std::pair<std::int64_t, std::string>>;

/// The lines of a file that comes in two chunks.
Numbered lines_of(const std::string& bytes, std::size_t cut, std::int64_t max_bytes = 100, std::int64_t before = 0) {
  Numbered found;
  JsonLines lines(
      "file", [&](std::string_view line, std::int64_t number) { found.emplace_back(number, line); }, max_bytes, before);
  lines.add(std::string_view(bytes).substr(0, cut));
  lines.add(std::string_view(bytes).substr(cut));
  lines.finish();
  return found;
}

TEST(JsonLines, AreTheSameWhereverTheBytesAreCut) {
  const Numbered expected{{1, "{\"a\": 1}"}, {4, "{}\r"}, {5, "last"}};
  for (const std::string end : {"", "\n", "\n \n"}) {
    const std::string bytes = "{\"a\": 1}\n\n \t\r\n{}\r\nlast" + end;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) EXPECT_EQ(lines_of(bytes, cut), expected) << cut;
  }
  EXPECT_TRUE(lines_of("", 0).empty());
}

TEST(JsonLines, AreNumberedFromThoseBefore) { EXPECT_EQ(lines_of("x\ny", 1, 100, 7), (Numbered{{8, "x"}, {9, "y"}})); }

TEST(JsonLines, HaveNoMoreThanTheBytesAllowed) {
  const std::string bytes = "abcd\nabcde\n";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(lines_of(bytes, cut, 5).size(), 2u);
    EXPECT_THAT(message_of<InputError>([&] { lines_of(bytes, cut, 4); }),
                HasSubstr("file:2: the line is longer than 4 bytes"))
        << cut;
  }
}

}  // namespace
}  // namespace zero

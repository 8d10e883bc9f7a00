#include "base/shell_word.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>

namespace zero {
namespace {

std::string echoed(const std::string& word) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> shell(popen(("printf %s " + shell_word(word)).c_str(), "r"),
                                                              pclose);
  std::array<char, 256> words{};
  const std::size_t bytes = std::fread(words.data(), 1, words.size(), shell.get());
  return {words.data(), bytes};
}

TEST(ShellWord, AShellReadsTheSameWord) {
  for (const char* word : {"a b", "it's", "$HOME", "a\"b`c`", "*", "~/x", "\xC3\xA4.toml", "a;b", "[1, 2]"})
    EXPECT_EQ(echoed(word), word);
}

TEST(ShellWord, PlainWordsStayPlain) {
  for (const char* word : {"runs/a-b_c.toml", "training.steps=3", "1.5e-3"}) EXPECT_EQ(shell_word(word), word);
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("-x"), "'-x'");
}

}  // namespace
}  // namespace zero

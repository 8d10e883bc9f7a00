#include "zero/data/examples/example_windows.h"

#include <gmock/gmock.h>

#include <numeric>

namespace zero {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

EncodedExample example_of(std::int32_t tokens, Example::Kind kind) {
  EncodedExample example{.text = "words", .ids = {}, .trained = {}, .place = "f:1", .kind = kind};
  example.ids.resize(static_cast<std::size_t>(tokens));
  std::iota(example.ids.begin(), example.ids.end(), 0);
  example.trained.assign(static_cast<std::size_t>(tokens), 1);
  example.trained[0] = 0;
  return example;
}

TEST(ExampleWindows, EveryTokenOfATextIsTrainedOnce) {
  for (const std::int64_t seq_len : {1, 2, 7, 64})
    for (std::int32_t tokens = 2; tokens < 60; ++tokens) {
      ExampleCounts counts;
      const auto windows =
          trained_windows(example_of(tokens, Example::Kind::text), seq_len, Overlong::truncate, counts);
      std::vector<std::int32_t> targets;
      for (const EncodedExample& window : windows) {
        ASSERT_LE(window.ids.size(), static_cast<std::size_t>(seq_len) + 1);
        ASSERT_EQ(window.trained.size(), window.ids.size());
        for (std::size_t i = 0; i < window.ids.size(); ++i) {
          EXPECT_EQ(window.ids[i], window.ids[0] + static_cast<std::int32_t>(i));
          if (window.trained[i]) targets.push_back(window.ids[i]);
        }
        EXPECT_EQ(window.trained[0], 0);
      }
      std::vector<std::int32_t> all(static_cast<std::size_t>(tokens) - 1);
      std::iota(all.begin(), all.end(), 1);
      EXPECT_EQ(targets, all) << tokens << " in " << seq_len;
      EXPECT_EQ(counts.examples, 1);
      EXPECT_EQ(counts.cut, tokens > seq_len + 1);
      EXPECT_EQ(warning_of(counts, seq_len), "");
    }
}

TEST(ExampleWindows, OthersKeepTheirStartAndTheRestIsCounted) {
  ExampleCounts counts;
  for (const auto kind : {Example::Kind::chat, Example::Kind::completion}) {
    const auto windows = trained_windows(example_of(30, kind), 10, Overlong::truncate, counts);
    ASSERT_EQ(windows.size(), 1U);
    EXPECT_EQ(windows[0].ids.size(), 11U);
  }
  EXPECT_EQ(counts.truncated, 2);
  EXPECT_EQ(counts.lost_tokens, 2 * 19);
  EXPECT_THAT(trained_windows(example_of(30, Example::Kind::text), 10, Overlong::drop, counts), IsEmpty());
  EXPECT_EQ(counts.lost_tokens, 2 * 19 + 29);
  EXPECT_EQ(
      warning_of(counts, 10),
      "1 of 3 examples are lost: 1 are left out as too long; 3 of 3 examples are longer than training.seq_len = 10, and 67 of "
      "their tokens are not trained: raise training.seq_len to train them");
}

TEST(ExampleWindows, CountsConversationsWithoutAnEndedAnswer) {
  ExampleCounts counts;
  EncodedExample chat = example_of(8, Example::Kind::chat);
  trained_windows(chat, 10, Overlong::truncate, counts);
  chat.unended = true;
  EXPECT_EQ(warning_of(counts, 10), "");
  trained_windows(chat, 10, Overlong::truncate, counts);
  EXPECT_THAT(
      warning_of(counts, 10),
      testing::StartsWith("In 1 of 2 examples the last trained answer ends with no special token, so the model"));
  trained_windows(chat, 4, Overlong::truncate, counts);
  EXPECT_THAT(warning_of(counts, 4), HasSubstr("raise training.seq_len to train them. In 2 of 3 examples the last"));
  ExampleCounts one;
  trained_windows(chat, 10, Overlong::truncate, one);
  EXPECT_EQ(note_of(one, 8, 10), "the last trained answer ends with no special token");
}

TEST(ExampleWindows, UntrainedPartsAreLeftOut) {
  ExampleCounts counts;
  EncodedExample text = example_of(25, Example::Kind::text);
  std::fill(text.trained.begin(), text.trained.begin() + 15, std::uint8_t{0});
  EXPECT_EQ(trained_windows(text, 10, Overlong::truncate, counts).size(), 2U);
  std::fill(text.trained.begin(), text.trained.end(), std::uint8_t{0});
  EXPECT_THAT(trained_windows(text, 10, Overlong::truncate, counts), IsEmpty());
  EXPECT_EQ(counts.dropped_untrained, 1);
  EXPECT_EQ(warning_of(counts, 10), "1 of 2 examples are lost: 1 have nothing to train");
}

TEST(ExampleWindows, WarnIfAnswersLieBeyondTheSequence) {
  ExampleCounts counts;
  EncodedExample chat = example_of(25, Example::Kind::chat);
  std::fill(chat.trained.begin(), chat.trained.begin() + 15, std::uint8_t{0});
  EXPECT_THAT(trained_windows(chat, 10, Overlong::truncate, counts), IsEmpty());
  EXPECT_EQ(
      warning_of(counts, 10),
      "1 of 1 examples are lost: 1 have nothing to train in their first 10 tokens; 1 of 1 examples are longer than "
      "training.seq_len = 10, and 10 of their tokens are not trained: raise training.seq_len to train them");
}

}  // namespace
}  // namespace zero

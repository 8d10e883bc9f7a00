#include "models/generate/chat_history.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

const std::string tinyllama = ZERO_TEST_DATA "/tinyllama-chat";

struct Chat {
  Tokenizer tokenizer = Tokenizer::load(tinyllama);
  ChatTokenizer chat{tokenizer, tinyllama};
  ChatTemplate words = ChatTemplate::load(tinyllama);
};

TEST(ChatHistory, ThePromptIsTheWholeConversation) {
  Chat parts;
  ChatHistory history(parts.words, parts.chat, 2048, 100);
  history.set_system("Be kind.");
  history.ask("Hi");
  history.answer("Hello!");
  const auto ids = history.ask("Who are you?");
  const std::vector<Message> said{
      {"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Hello!"}, {"user", "Who are you?"}};
  EXPECT_EQ(history.messages(), said);
  EXPECT_EQ(ids, parts.chat.encode(parts.words.prompt(said)).ids);
  EXPECT_EQ(history.end_of_turn(), 2);
  EXPECT_EQ(history.dropped(), 0);
}

TEST(ChatHistory, OldestTurnsGoAndTheSystemMessageStays) {
  Chat parts;
  ChatHistory history(parts.words, parts.chat, 160, 40);
  history.set_system("Be kind.");
  for (int turn = 0; turn < 12; ++turn) {
    const auto ids = history.ask("Question number " + std::to_string(turn) + "?");
    EXPECT_LE(ids.size(), 120U);
    EXPECT_EQ(ids, parts.chat.encode(parts.words.prompt(history.messages())).ids);
    EXPECT_EQ(history.messages()[0].role, "system");
    EXPECT_EQ(history.messages()[1].role, "user");
    EXPECT_EQ(history.messages().back().content, "Question number " + std::to_string(turn) + "?");
    history.answer("Answer number " + std::to_string(turn) + ".");
  }
  EXPECT_GT(history.dropped(), 0);
  EXPECT_EQ(history.dropped() % 2, 0);
  EXPECT_EQ(history.dropped() + static_cast<std::int64_t>(history.messages().size()), 25);
}

TEST(ChatHistory, AMessageThatCannotFitIsForgotten) {
  Chat parts;
  ChatHistory history(parts.words, parts.chat, 128, 32);
  history.ask("Hi");
  history.answer("Hello!");
  const auto before = history.messages();
  std::string flood;
  for (int i = 0; i < 200; ++i) flood += "word ";
  EXPECT_THROW(history.ask(flood), InputError);
  EXPECT_EQ(history.messages(), before);
  EXPECT_EQ(history.dropped(), 0);
}

TEST(ChatHistory, ATemplateOfAnotherTokenizerIsRefused) {
  Chat parts;
  const ChatTemplate chatml = ChatTemplate::named("chatml", "<s>", "</s>");
  EXPECT_THROW(ChatHistory(chatml, parts.chat, 2048, 100), InputError);
}

}  // namespace
}  // namespace zero

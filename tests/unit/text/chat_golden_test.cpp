#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

const std::string folder = std::string(ZERO_TEST_DATA) + "/tinyllama-chat";

std::vector<int> trained_mask(const TokenizedText& tokens, const std::vector<TextSpan>& trained) {
  std::vector<int> mask;
  for (const TextSpan& token : tokens.spans)
    mask.push_back(std::any_of(trained.begin(), trained.end(),
                               [&](const TextSpan& span) { return token.begin < span.end && span.begin < token.end; }));
  return mask;
}

TEST(ChatGolden, TextIdsMaskAndPromptAreThoseOfTransformers) {
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const ChatTemplate chat = ChatTemplate::load(folder);
  const ChatTokenizer encoder(tokenizer, folder);
  const auto cases = parse_json(read_text_file(folder + "/chat-cases.json"), "chat-cases.json");
  ASSERT_EQ(cases.size(), 6U);
  for (const auto& expected : cases) {
    std::vector<Message> messages;
    for (const auto& message : expected["messages"]) messages.push_back({message["role"], message["content"]});
    const RenderedChat rendered = chat.render(messages);
    EXPECT_EQ(rendered.text, expected["text"]);
    const TokenizedText tokens = encoder.encode(rendered.text);
    EXPECT_EQ(tokens.ids, expected["ids"].get<std::vector<std::int32_t>>());
    EXPECT_EQ(trained_mask(tokens, rendered.trained), expected["trained"].get<std::vector<int>>());
    std::vector<Message> asked(messages.begin(), messages.end() - 1);
    EXPECT_EQ(chat.prompt(asked), expected["prompt_text"]);
    EXPECT_EQ(encoder.encode(chat.prompt(asked)).ids, expected["prompt_ids"].get<std::vector<std::int32_t>>());
  }
}

}  // namespace
}  // namespace zero

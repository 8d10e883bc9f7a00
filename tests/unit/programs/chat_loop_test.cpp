#include "zero/programs/chat_loop.h"
#include "models/families/families.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <sstream>

#include "models/model.h"

namespace zero {
namespace {

const std::string tinyllama = ZERO_TEST_DATA "/tinyllama-chat";

/// A small random model with TinyLlama's tokenizer.
struct Talker {
  Tokenizer tokenizer = Tokenizer::load(tinyllama);
  ChatTokenizer chat{tokenizer, tinyllama};
  ChatTemplate words = ChatTemplate::load(tinyllama);
  Model model;

  Talker() {
    ModelConfig config = preset_config("llama-tiny");
    config.vocab_size = 32000;
    config.max_position_embeddings = 256;
    model = make_model(config);
    hold_parameters(model, at::kFloat);
    auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
    for (auto& unit : model.units)
      for (Parameter& parameter : unit->parameters())
        parameter.tensor.normal_(0, parameter.init == Init::ones ? 1 : 0.3, generator);
  }

  std::vector<Message> talk(const std::string& input, std::string& output, bool sign = false) {
    std::istringstream in(input);
    Generator generator(model);
    ChatHistory history(words, chat, 256, 16);
    GenerateOptions options;
    options.max_new_tokens = 8;
    chat_loop(generator, history, tokenizer, options, {in, [&](const std::string& more) { output += more; }, sign});
    return history.messages();
  }
};

TEST(ChatLoop, AnswersEveryLineWithWhatWasSaidBeforeInTheContext) {
  Talker talker;
  std::string output;
  const auto said = talker.talk("Hi\r\n\n  \nWho?\n/exit\nnever read\n", output);
  ASSERT_EQ(said.size(), 4U);
  EXPECT_EQ(said[0].content, "Hi");
  EXPECT_EQ(said[2].content, "Who?");
  EXPECT_EQ(output, said[1].content + "\n" + said[3].content + "\n");
  // the second answer is that to the whole conversation
  const auto prompt = talker.chat.encode(talker.words.prompt({said.begin(), said.begin() + 3})).ids;
  Generator fresh(talker.model);
  const auto made = fresh.generate({prompt}, {.max_new_tokens = 8, .stop_ids = {2}}).front();
  TextStream stream(talker.tokenizer, false);
  std::string expected;
  for (const std::int32_t id : made) expected += stream.next(id);
  EXPECT_EQ(said[3].content, expected + stream.finish());
}

TEST(ChatLoop, ALineTooLongOrNotUtf8DoesNotEndIt) {
  Talker talker;
  std::string output;
  const auto said = talker.talk(std::string(4000, 'x') + " y z\n\xFF\xFEhi", output, true);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].content, "\uFFFD\uFFFDhi");
  EXPECT_EQ(output, "> > " + said[1].content + "\n> ");
}

}  // namespace
}  // namespace zero

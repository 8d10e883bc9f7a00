#include "zero/data/examples/conversation_encoder.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/text/chat_template.h"
#include "models/unit.h"
#include "tests/unit/data/small_chats.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConversationEncoder, TrainsTheAnswerAndItsEndOrEverything) {
  const Example example = parse_example(chat("Hello!", "Hi"), "x:1");
  const EncodedExample answer = encoder().encode(example), all = encoder(TrainOn::all).encode(example);
  EXPECT_EQ(answer.text, "<|user|>\nHello!</s>\n<|assistant|>\nHi</s>\n");
  ASSERT_EQ(std::accumulate(answer.trained.begin(), answer.trained.end(), 0), 2);
  EXPECT_EQ(answer.trained[answer.ids.size() - 2], 1);
  EXPECT_EQ(answer.ids[answer.ids.size() - 2], 2);
  EXPECT_EQ(std::accumulate(all.trained.begin(), all.trained.end(), 0), static_cast<int>(all.ids.size()) - 1);
  EXPECT_EQ(all.trained[0], 0);
}

// The positions of the answers need not be known then.
TEST(ConversationEncoder, TrainsEverythingIfATemplatesAnswersCannotBeLocated) {
  const TemporaryFolder folder;
  const std::string counts =
      folder.write("c.jinja", "{% for m in messages %}{{ loop.length }}{{ m.content }}{{ eos_token }}{% endfor %}");
  const Example example = parse_example(chat("Hello!", "Hi"), "x:1");
  EXPECT_THROW(ConversationEncoder(tokenizer(), {model, counts}).encode(example), InputError);
  const EncodedExample all = ConversationEncoder(tokenizer(), {model, counts, TrainOn::all}).encode(example);
  EXPECT_EQ(all.text, "2Hello!</s>2Hi</s>");
  EXPECT_EQ(std::accumulate(all.trained.begin(), all.trained.end(), 0), static_cast<int>(all.ids.size()) - 1);
}

TEST(ConversationEncoder, MarksAnswersWithoutASpecialTokenAtTheEnd) {
  const TemporaryFolder folder;
  const auto unended = [&](const std::string& assistant, TrainOn train_on = TrainOn::assistant) {
    const std::string jinja = folder.write(
        "t.jinja", "{% for m in messages %}{% if m.role == 'user' %}Q: {{ m.content }}\n{% else %}A: " + assistant +
                       "{% endif %}{% endfor %}{% if add_generation_prompt %}A: {% endif %}");
    return ConversationEncoder(tokenizer(), {model, jinja, train_on})
        .encode(parse_example(chat("a", "b"), "x:1"))
        .unended;
  };
  EXPECT_FALSE(encoder().encode(parse_example(chat("a", "b"), "x:1")).unended);
  EXPECT_FALSE(encoder(TrainOn::all).encode(parse_example(chat("a", "b"), "x:1")).unended);
  for (const TrainOn train_on : {TrainOn::assistant, TrainOn::all}) {
    EXPECT_TRUE(unended("{{ m.content }}\n", train_on));
    EXPECT_FALSE(unended("{{ m.content }}{{ eos_token }}\n", train_on));
  }
  EXPECT_TRUE(unended("{% generation %}{{ m.content }}{% endgeneration %}{{ eos_token }}\n"));
  // the last of several answers counts
  const auto last_unended = [&](const std::string& end) {
    const std::string jinja = folder.write(
        "t.jinja",
        "{% for m in messages %}{% if m.role == 'user' %}Q: {{ m.content }}\n{% else %}A: {% generation %}{{ "
        "m.content }}" +
            end + "{% endgeneration %}{% endif %}{% endfor %}");
    return ConversationEncoder(tokenizer(), {model, jinja})
        .encode(parse_example(
            R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})",
            "x:1"))
        .unended;
  };
  EXPECT_TRUE(last_unended("{% if not loop.last %}{{ eos_token }}{% endif %}"));
  EXPECT_FALSE(last_unended("{{ eos_token }}"));
  EXPECT_FALSE(unended("{% generation %}{{ m.content }}{{ eos_token }}\n{% endgeneration %}"));
  EXPECT_FALSE(
      unended("{% generation %}{{ m.content }}{% endgeneration %}{% generation %}{{ eos_token }}{% endgeneration %}"));
}

TEST(ConversationEncoder, PromptsAndTextsHaveBosAndEosAndNoTemplate) {
  const TemporaryFolder bare;
  const ConversationEncoder plain(tokenizer(), {bare.path(""), ""});
  const EncodedExample completion =
      plain.encode(parse_example(R"({"prompt": "Hello", "completion": " World"})", "x:1"));
  EXPECT_THAT(completion.ids, ElementsAre(1, 15043, 2787, 2));
  EXPECT_THAT(completion.trained, ElementsAre(0, 0, 1, 1));
  const EncodedExample text = plain.encode(parse_example(R"({"text": "Hello World"})", "x:1"));
  EXPECT_EQ(text.ids, completion.ids);
  EXPECT_THAT(text.trained, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(message_of<InputError>([&] { plain.encode(parse_example(chat("a", "b"), "x:1")); }),
              HasSubstr("name by data.chat_template one of"));
}

// A text that was written with its marks trains the ids of one that was not.
TEST(ConversationEncoder, MarksThatATextWritesOutComeOnce) {
  const auto ids = [](const std::string& line) { return encoder().encode(parse_example(line, "x:1")); };
  const EncodedExample written = ids(R"({"text": "<s>[INST] a [/INST] b </s>"})");
  EXPECT_EQ(std::count(written.ids.begin(), written.ids.end(), 1), 1);
  EXPECT_EQ(std::count(written.ids.begin(), written.ids.end(), 2), 1);
  EXPECT_EQ(written.trained[0], 0);
  EXPECT_EQ(written.trained.back(), 1);
  EXPECT_THAT(ids(R"({"text": "<s>Hello World</s>"})").ids, ElementsAre(1, 10994, 2787, 2));
  EXPECT_THAT(ids(R"({"text": "Hello World</s>"})").ids, ElementsAre(1, 15043, 2787, 2));
  const EncodedExample completion = ids(R"({"prompt": "<s>Hello", "completion": " World</s>"})");
  EXPECT_THAT(completion.ids, ElementsAre(1, 10994, 2787, 2));
  EXPECT_THAT(completion.trained, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(ids(R"({"text": "a</s><s>b"})").ids,
              ::testing::AllOf(::testing::Contains(1).Times(2), ::testing::Contains(2).Times(2)));  // inside they stay
  EXPECT_THAT(ids(R"({"text": ""})").ids, ElementsAre(1, 2));
}

TEST(ConversationEncoder, MessagesSayWhetherTheyAreTrained) {
  const auto example = [](const std::string& first, const std::string& second, const std::string& user = "") {
    return parse_example(
        R"({"messages": [{"role": "user", "content": "a")" + user + R"(}, {"role": "assistant", "content": "b")" +
            first + R"(}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d")" + second + "}]}",
        "x:1");
  };
  for (const char* name : {"zephyr", "llama-2", "alpaca"}) {
    const ConversationEncoder chosen(tokenizer(), {model, name, TrainOn::assistant});
    const EncodedExample both = chosen.encode(example("", "")),
                         second = chosen.encode(example(R"(, "weight": 0)", R"(, "train": true)")),
                         none = chosen.encode(example(R"(, "train": false)", R"(, "weight": 0)"));
    EXPECT_EQ(second.ids, both.ids);
    const auto sum = [](const EncodedExample& one) {
      return std::accumulate(one.trained.begin(), one.trained.end(), 0);
    };
    EXPECT_EQ(2 * sum(second), sum(both)) << name;
    EXPECT_TRUE(std::equal(both.trained.rbegin(), both.trained.rbegin() + 6, second.trained.rbegin()))
        << name;  // the last answer is whole
    EXPECT_EQ(sum(none), 0) << name;
  }
  EXPECT_THAT(
      message_of<InputError>([&] { encoder().encode(example("", "", R"(, "train": true)")); }),
      ::testing::StartsWith(
          "x:1: message 1 of the user says that it is trained (weight, train), but data.train_on = \"assistant\""));
  EXPECT_THAT(
      message_of<InputError>([&] { encoder(TrainOn::all).encode(example("", R"(, "weight": 0)")); }),
      ::testing::StartsWith(
          "x:1: message 4 of the assistant says that it is not trained (weight, train), but data.train_on = \"all\""));
  EXPECT_NO_THROW(encoder().encode(example("", "", R"(, "weight": 0)")));
}

TEST(ConversationEncoder, RefusesATemplateThatDoesNotFitTheTokenizer) {
  EXPECT_THAT(message_of<InputError>([&] {
                ConversationEncoder(tokenizer(), {model, "chatml"});
              }),
              HasSubstr("<|im_end|>, which is no special token"));
  EXPECT_THAT(message_of<InputError>([&] {
                ConversationEncoder(tokenizer(), {model, "vicuna"});
              }),
              HasSubstr("known templates: zephyr, llama-2"));
  const ConversationEncoder llama2(tokenizer(), {model, "llama-2"});
  EXPECT_THAT(message_of<InputError>([&] {
                llama2.encode(parse_example(R"({"messages": [{"role": "assistant", "content": "x"}]})", "x:9"));
              }),
              ::testing::StartsWith("x:9: message 1 is of the assistant where the template llama-2 wants user"));
}

// Texts without a template need none that fits.
TEST(ConversationEncoder, AnUnusableTemplateIsReportedWhenAConversationNeedsIt) {
  const TemporaryFolder folder;
  folder.write("chat_template.jinja", ChatTemplate::named("chatml", "<s>", "</s>").jinja());
  const ConversationEncoder chatml(tokenizer(), {folder.path(""), ""});
  EXPECT_THAT(chatml.encode(parse_example(R"({"prompt": "Hello", "completion": " World"})", "x:1")).ids,
              ElementsAre(1, 15043, 2787, 2));
  EXPECT_THAT(message_of<InputError>([&] { chatml.encode(parse_example(chat("a", "b"), "x:2")); }),
              HasSubstr("<|im_end|>, which is no special token"));
}

}  // namespace
}  // namespace zero

#include "models/text/conversation/answer_spans.h"

#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "models/text/chat_template.h"
#include "models/text/known_chat_templates.h"
#include "tests/unit/message_of.h"
#include "tests/unit/text/trained_texts.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ConversationTemplate chat_of(const std::string& jinja) {
  return {{jinja, "the test"}, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}};
}

std::vector<std::string> answers(const std::string& jinja, const std::vector<Message>& messages) {
  return trained_texts(render_answers(chat_of(jinja), messages));
}

const std::vector<Message> talk = {{"user", "Hi"}, {"assistant", "Yö "}, {"user", "More?"}, {"assistant", "No"}};
const std::string turns =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

/// A conversation that every known template allows; an answer has no white space at its ends, which some strip.
std::vector<Message> random_talk(std::mt19937& random) {
  static const std::vector<std::string> words{"a", "é",   "日本", "<|im_end|>", "{{ x }}", "\n",
                                              " ", "  b", "</s>", "[INST]",     "🦙",    "\t."};
  const auto text = [&] {
    std::string joined = "w";
    for (auto count = random() % 6; count > 0; --count) joined += words[random() % words.size()];
    return joined + "w";
  };
  std::vector<Message> messages;
  if (random() % 2 == 0) messages.push_back({"system", text()});
  for (auto count = 1 + random() % 4; count > 0; --count) {
    messages.push_back({"user", text()});
    messages.push_back({"assistant", text()});
    if (random() % 4 == 0) messages.back().trained = false;
  }
  if (random() % 3 == 0) messages.push_back({"user", text()});
  return messages;
}

/// An older spelling of alpaca's: its prompt is no beginning of an answer.
bool asks_for_an_instruction(const std::string& jinja) {
  return jinja.find("add_generation_prompt %}{{ '### Instruction:") != std::string::npos;
}

/// Generation blocks in the known templates mark the answers that prefixes of the plain Jinja strings give.
TEST(AnswerSpans, AreThoseOfTheKnownTemplates) {
  std::mt19937 random(1);
  for (const KnownChatTemplate& known : known_chat_templates()) {
    const std::string jinja(known.jinja);
    const ChatTemplate marked = ChatTemplate::recognise(jinja, "<s>", "</s>", "x");
    const ConversationTemplate engine = chat_of(jinja);
    EXPECT_EQ(end_of_answer(engine, "</s>"), marked.end_of_turn()) << jinja;
    if (asks_for_an_instruction(jinja)) {
      EXPECT_THAT(message_of<InputError>([&] {
                    render_answers(engine, {{"user", "a"}, {"assistant", "b"}});
                  }),
                  HasSubstr("message 2"));
      continue;
    }
    for (int i = 0; i < 50; ++i) {
      const std::vector<Message> messages = random_talk(random);
      const RenderedChat expected = marked.render(messages), made = render_answers(engine, messages);
      EXPECT_EQ(made.text, expected.text) << jinja;
      EXPECT_EQ(made.trained, expected.trained) << jinja << made.text;
      EXPECT_EQ(render_prompt(engine, messages), marked.prompt(messages)) << jinja;
    }
  }
}

TEST(AnswerSpans, ComeOfPrefixes) {
  EXPECT_THAT(answers(turns, talk), ElementsAre("Yö <end>", "No<end>"));
  std::vector<Message> one = talk;
  one[1].trained = false;
  EXPECT_THAT(answers(turns, one), ElementsAre("No<end>"));
}

/// Phi-3's template writes EOS after the last message only.
TEST(AnswerSpans, AreFoundWhereTheTemplateEndsTheWholeWithEos) {
  const std::string ends = turns + "{% if not add_generation_prompt %}{{ eos_token }}{% endif %}";
  EXPECT_THAT(answers(ends, talk), ElementsAre("Yö <end>", "No<end>\n</s>"));
}

/// Qwen 3's template: the last answer has thoughts, possibly empty, and earlier ones have none.
TEST(AnswerSpans, AreFoundWordForWordWhereOnlyTheLastOneHasThoughts) {
  const std::string thinks =
      "{% for m in messages %}<{{ m.role }}>{% if loop.last and m.role == 'assistant' %}<think></think>{% endif %}{{ m.content }}<end>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_THAT(answers(thinks, talk), ElementsAre("Yö <end>", "<think></think>No<end>"));
  std::vector<Message> twice = talk;  // words that the template's mark does not end are not taken for the answer
  twice[1].content = "<end>";
  EXPECT_THAT(answers(thinks, twice), ElementsAre("<end><end>", "<think></think>No<end>"));
  const std::string joins =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ '!' if not loop.last and m.role == 'assistant' }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_THROW(answers(joins, talk), InputError);
}

TEST(AnswerSpans, AreNotLookedForWhereNoneIsTrained) {
  std::vector<Message> none = talk;
  for (Message& message : none) message.trained = false;
  EXPECT_THAT(answers("{% for m in messages %}{{ loop.length }}{{ m.content }}{% endfor %}", none), ElementsAre());
  EXPECT_THAT(answers("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}", none),
              ElementsAre());
}

TEST(AnswerSpans, ComeOfGenerationBlocks) {
  const std::string blocks =
      "é{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}.{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_THAT(answers(blocks, talk), ElementsAre("Yö .", "No."));
  std::vector<Message> one = talk;
  one[1].trained = false;
  EXPECT_THAT(answers(blocks, one), ElementsAre("No."));
}

/// There a block has the place that transformers gives it, where other text stands.
TEST(AnswerSpans, AreRefusedWhereABlockIsCaptured) {
  const std::string captured =
      "{% for m in messages %}{% set text %}{% generation %}{{ m.content }}{% endgeneration %}{% endset %}<{{ m.role }}>{{ text }}{% endfor %}";
  EXPECT_THAT(message_of<InputError>([&] { answers(captured, talk); }), HasSubstr("inside a set, filter or macro"));
  std::vector<Message> none = talk;
  for (Message& message : none) message.trained = false;
  EXPECT_THAT(answers(captured, none), ElementsAre());
}

TEST(AnswerSpans, AreRefusedWhereTheyCannotBeLocated) {
  const auto why = [](const std::string& jinja, const std::vector<Message>& messages) {
    return message_of<InputError>([&] { answers(jinja, messages); });
  };
  const std::string forgets =
      "{% for m in messages %}<{{ m.role }}>{{ m.content if loop.revindex < 3 else '...' }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_THAT(why(forgets, talk),
              HasSubstr("message 2: where this answer stands in the conversation's text cannot be told"));
  std::vector<Message> last = talk;
  last[1].trained = false;
  EXPECT_THAT(why("{% for m in messages %}{{ loop.length }}{{ m.content }}{% endfor %}", last), HasSubstr("message 4"));
  EXPECT_THAT(why(turns, {{"assistant", "a"}}), HasSubstr("begins with it"));
  EXPECT_THAT(why("{{ raise_exception('no such talk') }}", talk),
              HasSubstr("refuses the conversation (line 1 of it): no such talk"));
  EXPECT_THAT(why("{% if messages | length < 4 %}{{ raise_exception('short') }}{% endif %}", talk),
              HasSubstr("the messages up to it alone give: "));
}

TEST(AnswerSpans, EndWithTheMarkOfTheTemplate) {
  const auto mark = [](const std::string& jinja) { return end_of_answer(chat_of(jinja), "</s>"); };
  EXPECT_EQ(mark(turns), "<end>");
  EXPECT_EQ(mark("{{ messages[1].content }}"), "</s>");
  EXPECT_EQ(mark("{{ messages[1].content }}<|end|>{{ eos_token }}\n"), "<|end|>");
  EXPECT_EQ(mark("{{ raise_exception('x') }}"), "</s>");
}

}  // namespace
}  // namespace zero

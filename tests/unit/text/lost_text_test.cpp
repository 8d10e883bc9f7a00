#include "models/text/conversation/lost_text.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/text/chat_template.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string prompt = "{% if add_generation_prompt %}<assistant>{% endif %}";

/// A loop over the messages that writes `content` of each, in a block, so that answers are found without prefixes.
std::string writing(const std::string& content, const std::string& before = "") {
  return before + "{% for m in messages %}{% set c = m.content or '' %}<{{ m.role }}>{% generation %}" + content +
         "<end>{% endgeneration %}{% endfor %}" + prompt;
}

ChatJson held(const std::string& json) { return std::make_shared<const Json>(Json::parse(json)); }

Message whole(const std::string& json) {
  const Json message = Json::parse(json);
  const Json content = message.value("content", Json());
  return {message["role"], content.is_string() ? content.get<std::string>() : "", std::nullopt, held(json)};
}

class LostText : public ::testing::Test {
 protected:
  /// Why a conversation is refused as training data, or as a prompt; empty: it is taken.
  std::string why(const std::string& jinja, const std::vector<Message>& messages, const ChatContext& context = {},
                  bool as_prompt = false) const {
    const ChatTemplate chat = ChatTemplate::load(folder.path(), folder.write("t", jinja));
    try {
      as_prompt ? chat.prompt(messages, context) : chat.render(messages, context).text;
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder;
  const Message system{"system", "Answer in French."}, user{"user", "Two and two?"}, answer{"assistant", "Quatre."};
  const std::string thought = "<think>\n2 + 2 is 4.\n</think>\n\nQuatre.";
  const Message thinks{"assistant", thought};
};

TEST_F(LostText, SystemMessagesAreWrittenOrRefused) {
  const std::string no_system =
      "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}<end>{% endif %}{% endfor %}" +
      prompt;
  EXPECT_THAT(why(no_system, {system, user, answer}),
              AllOf(HasSubstr("message 1: what the system says, from \"Answer in French.\" on, would be lost"),
                    HasSubstr("put it into the first question")));
  EXPECT_THAT(why(no_system, {{"system", "s"}, user, answer}), HasSubstr("message 1: what the system says"))
      << "a letter that stands elsewhere";
  EXPECT_THAT(why(no_system, {system, user}, {}, true), HasSubstr("message 1: what the system says"));
  EXPECT_EQ(why(no_system, {user, answer}), "");
  EXPECT_EQ(why(no_system, {{"system", " \n"}, user, answer}), "") << "says nothing";
  EXPECT_EQ(why(writing("{{ c }}"), {system, user, answer}), "");
  // of several, and in the middle
  const std::string first_system =
      "{% if messages[0].role == 'system' %}<system>{{ messages[0].content }}<end>{% endif %}" + no_system;
  EXPECT_EQ(why(first_system, {system, user, answer}), "");
  EXPECT_THAT(why(first_system, {system, {"system", "Be brief."}, user, answer}),
              HasSubstr("message 2: what the system"));
  EXPECT_THAT(why(first_system, {system, user, answer, {"system", "Be brief."}, user, answer}),
              HasSubstr("message 4: what the system says"));
  // a system message that is written into the last question, where that is the last message
  const std::string last_question =
      "{% if messages[0].role == 'system' %}{% set s = messages[0].content %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}"
      "{% for m in rest %}<{{ m.role }}>{% if m.role == 'user' and loop.last and s is defined %}{{ s }}\n{% endif %}{% generation %}{{ m.content }}<end>{% endgeneration %}{% endfor %}";
  EXPECT_EQ(why(last_question, {system, user}, {}, true), "");
  EXPECT_THAT(why(last_question, {system, user, answer}), HasSubstr("message 1: what the system says"));
}

TEST_F(LostText, ContentsThatAreChangedAreNotLost) {
  for (const char* content :
       {"{{ c | upper }}", "{{ c | lower }}", "{{ c | title }}", "{{ c | trim }}", "{{ c.strip() | tojson }}",
        "{{ c | replace('\n', ' ') }}", "{{ c | e }}", "{{ c.split('</think>')[-1] }}"}) {
    const std::string jinja = "{% for m in messages %}{% set c = m.content %}<{{ m.role }}>{% generation %}" +
                              std::string(content) + "{% endgeneration %}{% endfor %}";
    EXPECT_EQ(why(jinja, {{"system", " Answer\nin French.  "}, user, answer}), "") << content;
  }
}

TEST_F(LostText, APartOfAContentCounts) {
  EXPECT_THAT(why(writing("{{ c[:20] }}"), {{"user", "Two and two? And three and three?"}, answer}),
              HasSubstr("message 1: what the user says"));
  EXPECT_THAT(why(writing("{{ c.split('|')[0] }}"), {user, {"assistant", "Quatre.|Six."}}),
              HasSubstr("message 2: what the assistant says"));
}

/// Thoughts in the text of an answer: those of the last one are written; those of earlier ones may be left out.
TEST_F(LostText, ThoughtsOfTheLastAnswerAreWrittenOrRefused) {
  const std::string cuts = "{{ c.split('</think>')[-1] }}",
                    cuts_out = "{{ c.split('<think>')[0] + c.split('</think>')[-1] }}",
                    cuts_earlier = "{{ c if loop.last else c.split('</think>')[-1] }}";
  EXPECT_THAT(why(writing(cuts), {user, thinks}),
              HasSubstr("message 2: what the assistant says, from \"2 + 2 is 4.\\n</think>\\n\\nQuatre.\" on,"));
  EXPECT_THAT(why(writing(cuts_out), {user, {"assistant", "Well. " + thought}}),
              HasSubstr("message 2: what the assistant says, from \"2 + 2"));
  EXPECT_THAT(why(writing(cuts), {user, thinks, user, answer}), HasSubstr("message 2: what the assistant says"))
      << "of no answer is a thought ever written";
  EXPECT_EQ(why(writing(cuts_earlier), {user, thinks, user, thinks}), "");
  EXPECT_EQ(why(writing(cuts_earlier), {user, thinks, user, answer}), "");
  EXPECT_EQ(why(writing(cuts), {user, {"assistant", "<think>\n\n</think>\n\nQuatre."}}), "") << "no thoughts in it";
  // Splits as Qwen 3's template does.
  const std::string apart =
      "{% if '</think>' in c %}<think>{{ c.split('</think>')[0].split('<think>')[-1].strip() }}</think>{{ c.split('</think>')[-1].lstrip() }}{% else %}{{ c }}{% endif %}";
  EXPECT_EQ(why(writing(apart), {user, thinks}), "");
  EXPECT_THAT(why(writing(apart), {user, {"assistant", "Well, well. " + thought}}), HasSubstr("from \"Well, well. "));
  // In a prompt only what asks for the answer counts.
  EXPECT_EQ(why(writing(cuts), {user, thinks, user}, {}, true), "");
}

TEST_F(LostText, ThoughtsUnderTheirKeysAreWrittenOrRefused) {
  const auto thinking = [](const char* key) {
    return whole(R"({"role": "assistant", "content": "Quatre.", ")" + std::string(key) + R"(": "hm, four"})");
  };
  const std::string writes = writing("{{ m.reasoning_content }}{{ c }}"),
                    writes_last = writing("{{ m.reasoning_content if loop.last }}{{ c }}"),
                    on_demand = writing("{{ m.reasoning_content if thinking is defined and thinking }}{{ c }}");
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    EXPECT_EQ(why(writes, {user, thinking(key)}), "");
    EXPECT_EQ(why(writes_last, {user, thinking(key), user, answer}), "");
    EXPECT_THAT(why(on_demand, {user, thinking(key)}),
                HasSubstr("message 2: the thoughts (reasoning_content, thinking)"));
    EXPECT_EQ(why(on_demand, {user, thinking(key)}, {nullptr, held(R"({"thinking": true})")}), "");
  }
}

TEST_F(LostText, AContentIsNoListWhereTheTemplateLoopsOverParts) {
  const std::string parts =
      "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}<end>{% endfor %}" +
      prompt;
  EXPECT_THAT(why(parts, {user, answer}),
              AllOf(HasSubstr("message 1: what the user says"),
                    HasSubstr("[{\"type\": \"text\", \"text\": ...}], which it does write")));
  const auto in_parts = [](const char* role, const std::vector<std::string>& texts) {
    Json content = Json::array();
    std::string all;
    for (const std::string& text : texts) {
      content.push_back({{"type", "text"}, {"text", text}});
      all += text;
    }
    return Message{role, all, std::nullopt, held(Json{{"role", role}, {"content", content}}.dump())};
  };
  EXPECT_EQ(why(parts, {in_parts("user", {"a", "b"}), in_parts("assistant", {"c"})}), "");
  EXPECT_EQ(why(parts, {in_parts("user", {"a", "b"})}, {}, true), "");
  const std::string first_part =
      "{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else m.content[0].text }}<end>{% endfor %}" +
      prompt;
  EXPECT_THAT(why(first_part, {in_parts("user", {"a", "and more"}), in_parts("assistant", {"c"})}),
              HasSubstr("message 1: what the user says, from \"and more\" on"));
}

/// A list that a template writes as one is no text.
TEST_F(LostText, PartsAreNoRemedyWhereTheirListWouldBeWritten) {
  for (const char* content :
       {"{{ m.content[:20] }}", "{{ (m.content | tojson)[:20] if m.content is string else m.content | tojson }}"})
    EXPECT_THAT(why(writing(content), {{"user", "Two and two? And three and three?"}, answer}),
                AllOf(HasSubstr("message 1: what the user says"), HasSubstr("take it out of the data")))
        << content;
}

TEST_F(LostText, CallsAndTheirArgumentsAreWrittenOrRefused) {
  const Message calls = whole(
      R"({"role": "assistant", "content": "So.", "tool_calls": [{"function": {"name": "f", "arguments": {"city": "Paris"}}}]})");
  const std::string
      no_content_first = writing(
          "{% if c %}{{ c }}{% else %}{% for call in m.tool_calls %}{{ call | tojson }}{% endfor %}{% endif %}"),
      names = writing("{{ c }}{% for call in m.tool_calls or [] %}{{ call.function.name }}{% endfor %}"),
      arguments = writing("{{ c }}{% for call in m.tool_calls or [] %}{{ call.function.arguments.city }}{% endfor %}"),
      all = writing(
          "{{ c }}{% for call in m.tool_calls or [] %}{{ call.function.name }}{{ call.function.arguments.city }}{% endfor %}");
  EXPECT_THAT(why(no_content_first, {user, calls}), HasSubstr("message 2: \"tool_calls\" would be lost"));
  EXPECT_THAT(why(names, {user, calls}), HasSubstr("message 2: the arguments of \"tool_calls\" would be lost"));
  EXPECT_THAT(why(arguments, {user, calls}), HasSubstr("message 2: the name of \"tool_calls\" would be lost"));
  EXPECT_EQ(why(all, {user, calls}), "") << "the arguments that it knows";
  // each of several calls counts, with arguments as objects and as JSON text
  for (const std::string quote : {"", "\\\""}) {
    const auto call = [&](const std::string& city) {
      const std::string object =
          quote.empty() ? "{\"city\": \"" + city + "\"}" : "\"{\\\"city\\\": \\\"" + city + "\\\"}\"";
      return R"({"function": {"name": "f", "arguments": )" + object + "}}";
    };
    const Message two =
        whole(R"({"role": "assistant", "content": "", "tool_calls": [)" + call("Rome") + ", " + call("Oslo") + "]}");
    const auto calling = [&](const std::string& body) {
      return why(writing("{{ c }}{% for call in m.tool_calls or [] %}" + body + "{% endfor %}"), {user, two});
    };
    const std::string name = "{{ call.function.name }}", given = "{{ call.function.arguments | string }}";
    EXPECT_EQ(calling(name + given), "");
    EXPECT_THAT(calling("{% if loop.first %}" + name + given + "{% endif %}"),
                HasSubstr("message 2: call 2 of \"tool_calls\" would be lost"));
    EXPECT_THAT(calling(name + "{% if loop.first %}" + given + "{% endif %}"),
                HasSubstr("message 2: the arguments of call 2 of \"tool_calls\" would be lost"));
    EXPECT_THAT(calling("{% if loop.first %}" + name + "{% endif %}" + given),
                HasSubstr("message 2: the name of call 2 of \"tool_calls\" would be lost"));
    EXPECT_THAT(calling(""), HasSubstr("message 2: \"tool_calls\" would be lost"));
  }
  // a name that decides what is written
  EXPECT_EQ(
      why(writing("{{ c }}{% for call in m.tool_calls or [] %}{{ '[F]' if call.function.name == 'f' else '[other]' "
                  "}}{{ call.function.arguments.city }}{% endfor %}"),
          {user, calls}),
      "");
  const Message asks_nothing =
      whole(R"({"role": "assistant", "content": "So.", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]})");
  EXPECT_EQ(why(names, {user, asks_nothing}), "") << "no arguments to lose";
}

TEST_F(LostText, ToolsAndTheirDescriptionsAreWrittenOrRefused) {
  const ChatContext tools{
      held(R"([{"type": "function", "function": {"name": "f", "description": "Tells the weather."}}])"), nullptr};
  EXPECT_EQ(why(writing("{{ c }}", "{{ tools | tojson if tools }}"), {user, answer}, tools), "");
  EXPECT_THAT(
      why(writing("{{ c }}", "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"), {user, answer}, tools),
      HasSubstr("\"tools\": the description of tool 1 would be lost"));
  EXPECT_THAT(why(writing("{{ c }}", "{% if tools and messages[0].role == 'system' %}{{ tools | tojson }}{% endif %}"),
                  {user, answer}, tools),
              HasSubstr("\"tools\" would be lost"));
  const ChatContext two{
      held(
          R"([{"type": "function", "function": {"name": "f", "description": "Now."}}, {"type": "function", "function": {"name": "g", "description": "Tells the weather.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}])"),
      nullptr};
  const auto telling = [&](const std::string& body) {
    return why(writing("{{ c }}", "{% for t in tools or [] %}" + body + "{% endfor %}"), {user, answer}, two);
  };
  const std::string name = "{{ t.function.name }}", description = "{{ t.function.description }}",
                    cities = "{{ t.function.parameters.properties.city.type if t.function.parameters }}";
  EXPECT_THAT(telling(name + description), HasSubstr("\"tools\": the parameters of tool 2 would be lost"));
  EXPECT_THAT(telling(description + cities), HasSubstr("\"tools\": the name of tool 1 would be lost"));
  EXPECT_EQ(telling(name + description + cities), "") << "the parameters that it knows";
}

TEST_F(LostText, AToolsResultIsWrittenOrRefused) {
  const std::string no_tool = writing("{% if m.role != 'tool' %}{{ c }}{% endif %}");
  for (const char* content : {R"("22 degrees")", R"({"degrees": 22})"}) {
    const Message said = whole(R"({"role": "tool", "content": )" + std::string(content) + "}");
    EXPECT_THAT(why(no_tool, {user, said, answer}), HasSubstr("message 2: what the tool says")) << content;
    EXPECT_EQ(why(writing("{{ c | tojson if c is not string else c }}"), {user, said, answer}), "") << content;
  }
}

/// Rendering reports the template's own refusal, in its words.
TEST_F(LostText, AConversationThatIsRefusedIsNotJudged) {
  EXPECT_THAT(why("{{ raise_exception('no system') if messages[0].role == 'system' }}" + writing("{{ c }}"),
                  {system, user, answer}),
              HasSubstr("refuses the conversation (line 1 of it): no system"));
}

TEST_F(LostText, AKeyIsReadWhereTheTextHangsOnIt) {
  const Message bob = whole(R"({"role": "user", "content": "a", "name": "Bob"})");
  const ChatTemplate names_tools = ChatTemplate::load(
                         folder.path(), folder.write("a", writing("{{ m.name if m.role == 'tool' }}{{ c }}"))),
                     names_all = ChatTemplate::load(folder.path(), folder.write("b", writing("{{ m.name }}{{ c }}")));
  EXPECT_FALSE(names_tools.reads("name", {bob, answer}, {})) << "it has the name, and reads it elsewhere";
  EXPECT_TRUE(names_all.reads("name", {bob, answer}, {}));
  EXPECT_FALSE(names_all.reads("age", {bob, answer}, {}));
}

}  // namespace
}  // namespace zero

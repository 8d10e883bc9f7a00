#include "models/text/conversation/shown_conversation.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/text/chat_template.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/text/trained_texts.h"

namespace zero {
namespace shown_conversation_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string plain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

ChatJson held(const char* json) { return std::make_shared<const Json>(Json::parse(json)); }

Message whole(const char* json) {
  const Json message = Json::parse(json);
  const Json content = message.value("content", Json());
  return {message["role"], content.is_string() ? content.get<std::string>() : "", std::nullopt,
          std::make_shared<const Json>(message)};
}

/// A folder with a template, optionally with another one for conversations with tools.
class ShownConversation : public ::testing::Test {
 protected:
  ChatTemplate of(const std::string& jinja) const {
    return ChatTemplate::load(folder.path(), folder.write("t", jinja));
  }
  std::string refusal(const std::string& jinja, const std::vector<Message>& messages,
                      const ChatContext& context = {}) const {
    return message_of<InputError>([&] { of(jinja).render(messages, context); });
  }
  std::string text(const std::string& jinja, const std::vector<Message>& messages,
                   const ChatContext& context = {}) const {
    return of(jinja).render(messages, context).text;
  }

  TemporaryFolder folder;
  const std::vector<Message> talk{{"user", "a"}, {"assistant", "b"}};
  const ChatContext tools{held(R"([{"name": "z", "about": {"b": 1, "a": 2.0}}])"), nullptr};
};

TEST_F(ShownConversation, TemplatesSeeToolsCallsThoughtsAndVariablesInTheirOrder) {
  const std::string jinja =
      "{{ tools | tojson }}|{{ level }}|{% for m in messages %}{{ m.tool_calls }}{{ m.reasoning_content }}{{ m.name }}"
      "<{{ m.role == 'tool' and m.tool_call_id }}{{ m.content }}>{% endfor %}";
  EXPECT_EQ(text(jinja,
                 {{"user", "a"},
                  whole(R"({"role": "assistant", "thinking": "hm", "tool_calls": [{"z": 1, "a": "x"}]})"),
                  whole(R"({"role": "tool", "name": "t", "tool_call_id": "7", "content": "c"})"),
                  {"user", "b"}},
                 {tools.tools, held(R"({"level": 3})")}),
            R"([{"name": "z", "about": {"b": 1, "a": 2.0}}]|3|<Falsea>[{'z': 1, 'a': 'x'}]hm<False>t<7c><Falseb>)");
}

TEST_F(ShownConversation, RefusesWhatTheTemplateNeverReads) {
  EXPECT_THAT(refusal(plain, talk, tools), HasSubstr("\"tools\" would be lost"));
  EXPECT_THAT(refusal(plain, talk, {nullptr, held(R"({"enable_thinking": true})")}),
              HasSubstr("\"chat_template_kwargs\": \"enable_thinking\" would be lost"));
  EXPECT_THAT(
      refusal(plain, {{"user", "a"}, whole(R"({"role": "assistant", "content": "b", "tool_calls": [{"id": 1}]})")}),
      HasSubstr("message 2: \"tool_calls\" would be lost"));
  for (const char* key : {"reasoning_content", "thinking", "reasoning"})
    EXPECT_THAT(
        refusal(plain,
                {{"user", "a"},
                 whole((R"({"role": "assistant", "content": "b", ")" + std::string(key) + R"(": "hm"})").c_str())}),
        HasSubstr("message 2: the thoughts (reasoning_content, thinking) would be lost"));
  const std::string no_tools_role =
      "{% for tool in tools or [] %}{{ tool }}{% endfor %}{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_THAT(refusal(no_tools_role, {{"user", "a"}, {"tool", "b"}}), HasSubstr("message 2: what the tool says"));
}

/// Cases that lose nothing: the template writes whole objects or names a variable, or there is nothing to lose.
TEST_F(ShownConversation, TakesWhatIsWrittenOrEmpty) {
  EXPECT_THAT(refusal(plain + "{% if tools %}{% endif %}", talk, tools), HasSubstr("\"tools\" would be lost"));
  EXPECT_EQ(text(plain + "{% if level %}{% endif %}", talk, {nullptr, held(R"({"level": 3})")}),
            "<user>a<end><assistant>b<end>");
  EXPECT_EQ(text(plain, talk, {held("[]"), held(R"({"enable_thinking": false, "x": null, "y": ""})")}),
            "<user>a<end><assistant>b<end>");
  EXPECT_EQ(text(plain, {{"user", "a"}, {"tool", "b"}}), "<user>a<end><tool>b<end>") << "by the name of its role";
  EXPECT_THAT(text("{{ messages }}", {{"user", "a"}, whole(R"({"role": "user", "content": "b", "tool_calls": [1]})")}),
              HasSubstr("'tool_calls': [1]"));
  EXPECT_EQ(text("{% for m in messages %}{{ m.content }}{{ m.get('tool_calls') }}{% endfor %}",
                 {whole(R"({"role": "user", "content": "b", "tool_calls": [1]})")}),
            "b[1]");
}

/// Arguments that are JSON text: the text where the template takes one, else the object.
TEST_F(ShownConversation, ArgumentsAreShownAsTheTemplateTakesThem) {
  const auto made = [&](const std::string& written, const char* call) {
    const std::string message = R"({"role": "assistant", "tool_calls": [)" + std::string(call) + "]}";
    const std::string all = text(
        "{% for m in messages %}{{ m.content if m.role == 'user' }}{% for call in m.tool_calls or [] %}"
        "{% set f = call.function or call %}{{ f.name }}:" +
            written + "{% endfor %}{% endfor %}",
        {{"user", "a"}, whole(message.c_str())});
    return all.substr(all.find(':') + 1);
  };
  const char* call = R"({"function": {"name": "f", "arguments": "{\"b\":  1, \"a\": \"é\"}"}})";
  EXPECT_EQ(made("{{ f.arguments }}", call), R"({"b":  1, "a": "é"})");
  EXPECT_EQ(made("{{ f.arguments if f.arguments is string else f.arguments | tojson }}", call),
            R"({"b":  1, "a": "é"})");
  EXPECT_EQ(made("{{ f.arguments | tojson }}", call), R"({"b": 1, "a": "é"})") << "no quotes around quotes";
  EXPECT_EQ(made("{{ call | tojson }}", call), R"({"function": {"name": "f", "arguments": {"b": 1, "a": "é"}}})");
  EXPECT_EQ(made("{% for k, v in f.arguments | items %}{{ k }}={{ v }};{% endfor %}", call), "b=1;a=é;");
  EXPECT_EQ(made("{{ f.arguments | tojson }}", R"({"arguments": "{}"})"), "{}") << "beside the name";
  EXPECT_EQ(made("{{ f.arguments | tojson }}", R"({"arguments": "7"})"), "\"7\"") << "no object";
}

TEST_F(ShownConversation, KnownTemplatesWriteWhatToolsSayAndRefuseTheRest) {
  const ChatTemplate chatml = ChatTemplate::named("chatml", "<s>", "</s>"),
                     zephyr = ChatTemplate::named("zephyr", "<s>", "</s>");
  const std::vector<Message> said{{"user", "a"}, {"assistant", "b"}, {"tool", "c"}, {"assistant", "d"}};
  EXPECT_THAT(chatml.render(said).text, HasSubstr("<|im_start|>tool\nc<|im_end|>\n"));
  EXPECT_THAT(trained_texts(chatml.render(said)), ElementsAre("b<|im_end|>", "d<|im_end|>"));
  EXPECT_THAT(message_of<InputError>([&] { zephyr.render(said); }), HasSubstr("message 3: what the tool says"));
  EXPECT_THAT(message_of<InputError>([&] { zephyr.render(talk, tools); }), HasSubstr("\"tools\" would be lost"));
  EXPECT_THAT(message_of<InputError>([&] { zephyr.prompt(talk, tools); }), HasSubstr("\"tools\" would be lost"));
}

TEST_F(ShownConversation, PartsAreShownWhereTheTemplateWritesThem) {
  const std::string parts =
      "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{{ ';' if not loop.last }}{% endfor %}{% endif %}{% endfor %}";
  const Message one{"user", "x", std::nullopt, held(R"({"role": "user", "content": [{"type": "text", "text": "x"}]})")},
      two{"user", "xy", std::nullopt,
          held(R"({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]})")};
  EXPECT_EQ(text(parts, {two}), "<user>x;y");
  EXPECT_EQ(text(plain, {one}), "<user>x<end>");
  EXPECT_THAT(refusal(plain, {talk[0], two}), HasSubstr("message 2: \"content\" has 2 parts"));
  EXPECT_EQ(ChatTemplate::named("zephyr", "<s>", "</s>").render({one}).text, "<|user|>\nx</s>\n");
  // A template that writes texts and takes few conversations is tried with the one that there is.
  const std::string picky =
      "{% if messages[0].role != 'system' or messages | length < 3 %}{{ raise_exception('no') }}{% endif %}";
  EXPECT_EQ(text(picky + plain, {{"system", "s"}, one, {"assistant", "b", false}}),
            "<system>s<end><user>x<end><assistant>b<end>");
  EXPECT_EQ(text(picky + parts, {{"system", "s"}, two, {"assistant", "b", false}}), "<system>s<user>x;y<assistant>b");
}

TEST_F(ShownConversation, ToolsHaveATemplateOfTheirOwnWhereTheFolderHasOne) {
  folder.write("tokenizer_config.json",
               Json{{"chat_template",
                     {{{"name", "default"}, {"template", plain}},
                      {{"name", "tool_use"}, {"template", "{{ tools }}{{ messages[0].content }}"}}}}}
                   .dump());
  const ChatTemplate both = ChatTemplate::load(folder.path());
  EXPECT_EQ(both.render({{"user", "a"}}).text, "<user>a<end>");
  EXPECT_EQ(both.render({{"user", "a"}}, {held("[]"), nullptr}).text, "[]a");
  folder.write("tokenizer_config.json",
               Json{{"chat_template",
                     {{{"name", "default"}, {"template", plain}}, {{"name", "tool_use"}, {"template", "{% if %}"}}}}}
                   .dump());
  const ChatTemplate broken = ChatTemplate::load(folder.path());
  EXPECT_EQ(broken.render({{"user", "a"}}).text, "<user>a<end>") << "no tools, so the other is not needed";
  EXPECT_THAT(message_of<InputError>([&] { broken.render({{"user", "a"}}, tools); }), HasSubstr("cannot be read"));
}

TEST_F(ShownConversation, AnswersAreThoseOfThePrefixesWithToolsAndThoughts) {
  const std::string jinja =
      "{% for tool in tools or [] %}{{ (tool.function or tool).name }};{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.reasoning_content }}{{ m.content }}{{ m.tool_calls }}<end>\n{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  const RenderedChat made =
      of(jinja).render({{"user", "a"},
                        whole(R"({"role": "assistant", "reasoning_content": "hm", "tool_calls": [1]})"),
                        {"tool", "r"},
                        {"assistant", "b"}},
                       tools);
  EXPECT_EQ(made.text, "z;<user>a<end>\n<assistant>hm[1]<end>\n<tool>r<end>\n<assistant>b<end>\n");
  EXPECT_THAT(trained_texts(made), ElementsAre("hm[1]<end>", "b<end>"));
}

}  // namespace shown_conversation_test
}  // namespace zero

#include "models/text/conversation/conversation_template.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "models/text/jinja/error.h"
#include "models/text/pipeline/text_pipeline.h"

namespace zero {
namespace conversation_template_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string data = ZERO_TEST_DATA;

class ChatCases : public ::testing::TestWithParam<const char*> {};

/// The output of transformers' apply_chat_template, from the reference cases.
TEST_P(ChatCases, TextIdsSpansAndErrorsAreThoseOfTransformers) {
  const std::string folder = data + "/chat/" + GetParam();
  const Json file = parse_ordered_json(read_text_file(folder + "/cases.json"), folder);
  ConversationTemplate::Tokens tokens;
  for (const auto& [name, token] : file["special"].items()) tokens.emplace_back(name, token);
  const ConversationTemplate chat({read_text_file(folder + "/template.jinja"), folder}, tokens);
  const TextPipeline pipeline = TextPipeline::load(data + "/pipelines/" + file["tokenizer"].get<std::string>());
  ASSERT_GT(file["cases"].size(), 5U);
  for (const Json& one : file["cases"])
    for (const bool prompt : {false, true}) {
      const std::string prefix = prompt ? "prompt_" : "",
                        where = one["name"].get<std::string>() + (prompt ? ", prompt" : "");
      Json request = one;
      request["add_generation_prompt"] = prompt;
      try {
        const ConversationText made = chat.render(request);
        EXPECT_EQ(made.text, one.value(prompt ? "prompt" : "text", Json())) << where;
        EXPECT_EQ(pipeline.encode(made.text, false), one[prefix + "ids"].get<std::vector<std::int32_t>>()) << where;
        EXPECT_EQ(made.generated.has_value(), file["generation"]);
        if (prompt || !made.generated) continue;
        Json spans = Json::array();
        for (const auto& span : *made.generated) spans.push_back(Json::array({span.begin, span.end}));
        EXPECT_EQ(spans, one["spans"]) << where;
      } catch (const jinja::TemplateError& error) {
        if (one.contains(prefix + "error")) {
          EXPECT_EQ(error.kind(), jinja::TemplateError::Kind::raised) << where;
          EXPECT_EQ(error.message(), one[prefix + "error"]) << where;
        } else {
          EXPECT_EQ(error.kind(), jinja::TemplateError::Kind::failed) << where << error.what();
          EXPECT_TRUE(one.contains(prefix + "fails")) << where << error.what();
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Reference, ChatCases, ::testing::Values("brackets", "headers", "thoughts", "turns"));

TEST(ConversationTemplate, TextsGiveWhatTheirRequestGives) {
  const std::string shows =
      "{{ bos }}{{ tools }}{{ documents }}{{ extra is defined }}{% for m in messages %}<{{ m | tojson }}>"
      "{% generation %}é{{ m.content }}{% endgeneration %}{% endfor %}{{ add_generation_prompt }}";
  const ConversationTemplate chat({shows, "the test"}, {{"bos", "<s>"}});
  const std::vector<Message> messages{{"user", "\u00e4 b"}, {"assistant", ""}, {"user", "not shown"}};
  for (const bool prompt : {false, true}) {
    const Json request{
        {"messages", {{{"role", "user"}, {"content", "\u00e4 b"}}, {{"role", "assistant"}, {"content", ""}}}},
        {"add_generation_prompt", prompt}};
    const ConversationText made = chat.render(messages, 2, prompt), expected = chat.render(request);
    EXPECT_EQ(made.text, expected.text);
    EXPECT_EQ(made.generated, expected.generated);
    EXPECT_EQ(made.generated_bytes, expected.generated_bytes);
    ASSERT_EQ(made.generated_bytes.size(), 2U);
    const auto [begin, end] = made.generated_bytes[0];
    EXPECT_EQ(made.text.substr(begin, end - begin), "\u00e9\u00e4 b");
  }
}

class TemplateFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = fs::path(::testing::TempDir()) / ("templates-" + std::to_string(::getpid()));
    fs::create_directories(folder / "additional_chat_templates");
  }
  void TearDown() override { fs::remove_all(folder); }
  void write(const char* name, const std::string& content) const { write_text_file(folder / name, content); }
  std::string render(const Json& request, const std::string& file = "") const {
    return ConversationTemplates(folder, file).render(request).text;
  }
  std::string refusal(const Json& request) const {
    try {
      return "not refused: " + render(request);
    } catch (const InputError& error) {
      return error.what();
    }
  }

  fs::path folder;
  const Json plain = {{"messages", {{{"role", "user"}, {"content", "a"}}}}};
};

TEST_F(TemplateFolder, TakesTheTemplateThatTransformersTakes) {
  Json tools = plain;
  tools["tools"] = Json::array();
  EXPECT_THAT(refusal(plain), HasSubstr("has no chat template"));
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]})");
  EXPECT_EQ(render(plain) + render(tools), "DT");
  write("tokenizer_config.json", R"({"chat_template": "C"})");
  EXPECT_EQ(render(plain) + render(tools), "CC");
  write("additional_chat_templates/tool_use.jinja", "U");
  EXPECT_EQ(render(plain) + render(tools), "CU");
  write("chat_template.jinja", "J");
  EXPECT_EQ(render(plain) + render(tools), "JU");
  write("own.jinja", "O");
  EXPECT_EQ(render(plain, folder / "own.jinja") + render(tools, folder / "own.jinja"), "OO");
}

TEST_F(TemplateFolder, ShowsSpecialTokensVariablesAndNoNulls) {
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>", "unk_token": null, "image_token": "<i>",
                                     "add_bos_token": true, "extra_special_tokens": {"boi_token": "<o>"}})");
  write(
      "chat_template.jinja",
      "{{ bos_token }}{{ eos_token }}{{ image_token }}{{ boi_token }}{{ unk_token is defined }}{{ add_bos_token is defined }}"
      "{{ documents is none }}{{ tools is none }}{{ messages }}{{ x }}");
  Json request = {{"messages", {{{"role", "user"}, {"content", nullptr}, {"reasoning", "r"}}}},
                  {"variables", {{"x", 1.0}, {"eos_token", "E"}}}};
  EXPECT_EQ(
      render(request),
      "<b>E<i><o>FalseFalseTrueTrue[{'thinking': 'r', 'role': 'user', 'reasoning': 'r', 'reasoning_content': 'r'}]1.0");
}

TEST_F(TemplateFolder, RefusesRequestsOfAnotherForm) {
  write("chat_template.jinja", "{{ messages[0].content }}");
  for (const char* request :
       {R"({"messages": []})", R"({"messages": "a"})", R"({"messages": [1]})", R"({"messages": [{}], "tools": 1})",
        R"({"messages": [{}], "variables": []})", R"({"messages": [{}], "variables": {"tools": []}})",
        R"({"messages": [{}], "add_generation_prompt": 1})"})
    EXPECT_THAT(refusal(Json::parse(request)), HasSubstr("\"")) << request;
  write("chat_template.jinja", "\n{% if %}");
  EXPECT_THAT(refusal(plain), ::testing::AllOf(HasSubstr("chat_template.jinja: the chat template cannot be read"),
                                               HasSubstr("line 2")));
}

}  // namespace conversation_template_test
}  // namespace zero

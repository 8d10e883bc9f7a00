#include "zero/data/examples/example_keys.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/data/examples/conversation.h"
#include "zero/data/examples/example_file.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refused(const std::string& line) {
  return message_of<InputError>([&] { parse_example(line, "f.jsonl:3"); });
}

std::string with_answer(const std::string& keys) {
  return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", )" + keys + "}]}";
}

TEST(ExampleKeys, FlagsOfMessagesAreRead) {
  const auto flag = [](const std::string& keys) {
    return parse_example(with_answer(R"("content": "b", )" + keys), "x:1").messages[1].trained;
  };
  EXPECT_EQ(flag(R"("weight": 0)"), false);
  EXPECT_EQ(flag(R"("weight": 1.0)"), true);
  EXPECT_EQ(flag(R"("train": false)"), false);
  EXPECT_EQ(flag(R"("training": true)"), true);
  EXPECT_EQ(flag(R"("weight": null, "train": null)"), std::nullopt);
  EXPECT_EQ(flag(R"("weight": 0, "train": false)"), false);
  EXPECT_THAT(refused(with_answer(R"("content": "b", "weight": 0.5)")),
              HasSubstr("f.jsonl:3: message 2: \"weight\" must be 0 or 1, not 0.5"));
  EXPECT_THAT(refused(with_answer(R"("content": "b", "weight": true)")), HasSubstr("must be 0 or 1"));
  EXPECT_THAT(refused(with_answer(R"("content": "b", "train": 0)")),
              HasSubstr("\"train\" must be true or false, not 0"));
  EXPECT_THAT(refused(with_answer(R"("content": "b", "train": true, "weight": 0)")), HasSubstr("contradict"));
  EXPECT_EQ(
      parse_example(R"({"conversations": [{"from": "gpt", "value": "a", "weight": 0}]})", "x:1").messages[0].trained,
      false);
}

// Keys that would change the text or the loss are never dropped.
TEST(ExampleKeys, UnsupportedKeysAreRefusedByName) {
  for (const char* key : {"function_call", "images", "audio", "refusal", "train_detail"}) {
    const std::string name = text("\"", key, "\"");
    EXPECT_THAT(refused(with_answer(R"("content": "", )" + name + R"(: [{"id": "x"}])")),
                StartsWith("f.jsonl:3: message 2: " + name + ": "))
        << key;
    EXPECT_EQ(parse_example(with_answer(R"("content": "b", )" + name + ": null"), "x:1").messages.size(), 2U) << key;
    EXPECT_EQ(parse_example(with_answer(R"("content": "b", )" + name + ": []"), "x:1").messages.size(), 2U) << key;
  }
  for (const char* key : {"functions", "images", "documents", "system_prompt"})
    EXPECT_THAT(refused(text(R"({"messages": [{"role": "user", "content": "a"}], ")", key, R"(": ["x"]})")),
                StartsWith(text("f.jsonl:3: \"", key, "\": ")))
        << key;
  for (const char* flag : {R"("weight": 0)", R"("weight": 0.5)", R"("train": false)", R"("training": 1)"})
    EXPECT_THAT(refused(text(R"({"text": "a", )", flag, "}")),
                StartsWith(text("f.jsonl:3: ", flag, " of a whole example is not honoured")));
  EXPECT_THAT(refused(R"({"prompt": "a", "completion": "b", "label": false})"), HasSubstr("\"label\""));
  for (const char* key : {"tools", "chat_template_kwargs"})  // they belong to "messages"
    EXPECT_THAT(refused(text(R"({"instruction": "a", "output": "b", ")", key, R"(": [{"x": 1}]})")),
                StartsWith(text("f.jsonl:3: \"", key, "\": ")));
  for (const char* key : {"tool_calls", "thinking", "reasoning_content"})
    EXPECT_THAT(refused(text(R"({"conversations": [{"from": "gpt", "value": "a", ")", key, R"(": [1]}]})")),
                StartsWith(text("f.jsonl:3: message 1: \"", key, "\": ")));
}

TEST(ExampleKeys, EmptyValuesAreIgnored) {
  std::set<std::string> ignored;
  const auto messages = [&](const std::string& keys) {
    return parse_example(R"({"messages": [{"role": "user", "content": "a"}], )" + keys + "}", "x:1", &ignored)
        .messages.size();
  };
  for (const char* keys :
       {R"("tools": "[]")", R"("tools": " [ ] ")", R"("tools": "null")", R"("tools": [])", R"("tools": null)",
        R"("documents": "{}")", R"("weight": 1)", R"("weight": 1.0)", R"("train": true)", R"("training": true)"})
    EXPECT_EQ(messages(keys), 1U) << keys;
  EXPECT_THAT(ignored, ::testing::IsEmpty());
  EXPECT_EQ(parse_example(with_answer(R"("content": "b")"), "x:1").messages[1].whole, nullptr);
}

TEST(ExampleKeys, ContentIsATextOrPartsOfText) {
  const Message two =
      parse_example(with_answer(R"("content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])"), "x:1")
          .messages[1];
  EXPECT_EQ(two.content, "ab");
  EXPECT_EQ(two.whole->at("content").size(), 2U);
  EXPECT_EQ(parse_example(R"({"conversations": [{"from": "gpt", "value": [{"type": "text", "text": "b"}]}]})", "x:1")
                .messages[0],
            (Message{"assistant", "b"}));
  for (const char* content :
       {R"([{"type": "image_url", "image_url": {"url": "x"}}])", R"(["b"])", R"([{"type": "text", "text": 1}])"})
    EXPECT_THAT(refused(with_answer(text("\"content\": ", content))),
                HasSubstr("message 2: \"content\" has a part that is not {\"type\": \"text\""))
        << content;
  EXPECT_THAT(refused(with_answer("\"content\": []")), HasSubstr("is an empty list"));
  EXPECT_THAT(refused(with_answer("\"content\": {\"a\": 1}")), HasSubstr("must be a text, not object"));
  EXPECT_THAT(refused(R"({"conversations": [{"from": "gpt", "value": [{"type": "text"}, {"type": "text"}]}]})"),
              HasSubstr("message 1: \"value\" is a list; taken are a text, or a list of one part"));
}

TEST(ExampleKeys, ToolsCallsThoughtsAndVariablesGoToTheTemplate) {
  const Example example = parse_example(
      R"({"tools": [{"z": 1, "a": 2}], "chat_template_kwargs": "{\"y\": 1, \"b\": null}", "messages": [
          {"role": "user", "content": "q", "train": false, "none": null},
          {"role": "assistant", "content": null, "weight": 1, "tool_calls": [{"z": 1, "a": "x"}], "thinking": "hm"},
          {"role": "tool", "content": {"b": 1, "a": 2}, "tool_call_id": "7"}]})",
      "x:1");
  EXPECT_EQ(example.context.tools->dump(), R"([{"z":1,"a":2}])");
  EXPECT_EQ(example.context.variables->dump(), R"({"y":1,"b":null})");
  EXPECT_EQ(example.messages[0].whole, nullptr);
  EXPECT_EQ(example.messages[1].whole->dump(),
            R"({"role":"assistant","tool_calls":[{"z":1,"a":"x"}],"thinking":"hm"})");
  EXPECT_EQ(example.messages[1].trained, true);
  EXPECT_EQ(example.messages[2].whole->dump(), R"({"role":"tool","content":{"b":1,"a":2},"tool_call_id":"7"})");
  const auto tools = [](const std::string& written) {
    return parse_example(R"({"messages": [{"role": "user", "content": "a"}], "tools": )" + written + "}", "x:1")
        .context.tools;
  };
  EXPECT_EQ(tools(R"("[{\"name\": \"x\"}]")")->dump(), R"([{"name":"x"}])");
  EXPECT_EQ(tools("[]")->dump(), "[]") << "which some templates tell from none";
  for (const char* none : {"null", "\"\"", "\"null\""}) EXPECT_EQ(tools(none), nullptr) << none;
}

TEST(ExampleKeys, ToolsCallsAndVariablesOfAnotherFormAreRefused) {
  const auto beside = [](const std::string& keys) {
    return refused(R"({"messages": [{"role": "user", "content": "a"}], )" + keys + "}");
  };
  for (const char* tools : {"1", "{}", "[1]", R"("[}")", R"("{}")", R"("[\"a\"]")"})
    EXPECT_THAT(beside(text("\"tools\": ", tools)), StartsWith("f.jsonl:3: \"tools\"")) << tools;
  for (const char* variables : {"1", "[]", R"("[]")"})
    EXPECT_THAT(beside(text("\"chat_template_kwargs\": ", variables)), HasSubstr("must be an object")) << variables;
  for (const char* calls : {"1", R"("[]")", "[1]", R"({"id": 1})"})
    EXPECT_THAT(refused(with_answer(text("\"content\": \"b\", \"tool_calls\": ", calls))),
                HasSubstr("message 2: \"tool_calls\" must be a list of objects"))
        << calls;
  EXPECT_THAT(refused(with_answer(R"("content": null, "tool_calls": [])")), HasSubstr("must be a text, not null"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"n": 123456789012345678901}]})"),
              HasSubstr("does not fit into 64 bits"));
  std::string many = "\"tools\": [{";
  for (int key = 0; key <= 10'000; ++key) many += text(key > 0 ? ", " : "", "\"", key, "\": 0");
  EXPECT_THAT(beside(many + "}]"), HasSubstr("an object of more than 10000 keys"));
}

TEST(ExampleKeys, SystemNextToMessagesIsTheFirstMessage) {
  EXPECT_EQ(parse_example(R"({"system": "s", "messages": [{"role": "user", "content": "a"}]})", "x:1").messages[0],
            (Message{"system", "s"}));
  EXPECT_THAT(refused(R"({"system": "s", "conversations": [{"from": "system", "value": "t"}]})"),
              HasSubstr("a system message and \"system\" as well"));
}

TEST(ExampleKeys, OthersAreIgnoredAndListed) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.jsonl",
      R"({"id": 7, "tools": [], "messages": [{"role": "user", "content": "a", "name": "Bo"}], "source": "x"})"
      "\n"
      R"({"text": "t", "score": 1})"
      "\n"
      R"({"text": "t", "late": 1})");
  const auto none = [](const std::string&, const Example&) { return false; };
  EXPECT_THAT(ignored_keys(path, 1, none), ElementsAre("id", "messages[].name", "source"));
  EXPECT_THAT(ignored_keys(path, 2, none), ElementsAre("id", "messages[].name", "score", "source"));
  const auto name = [](const std::string& key, const Example& example) {
    return key == "name" && example.messages.size() == 1;
  };
  EXPECT_THAT(ignored_keys(path, 2, name), ElementsAre("id", "score", "source"));
}

}  // namespace
}  // namespace zero

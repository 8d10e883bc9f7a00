#include "zero/data/examples/example_keys.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/log.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/data/examples/conversation.h"
#include "zero/data/examples/example_file.h"

namespace zero {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

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

// What would change the text or the loss is never dropped.
TEST(ExampleKeys, WhatIsNotHonouredIsRefusedByName) {
  for (const char* key : {"tool_calls", "function_call", "tool_call_id", "images", "audio", "reasoning_content",
                          "refusal", "train_detail"}) {
    const std::string name = text("\"", key, "\"");
    EXPECT_THAT(refused(with_answer(R"("content": "", )" + name + R"(: [{"id": "x"}])")),
                StartsWith("f.jsonl:3: message 2: " + name + ": "))
        << key;
    EXPECT_EQ(parse_example(with_answer(R"("content": "b", )" + name + ": null"), "x:1").messages.size(), 2U) << key;
    EXPECT_EQ(parse_example(with_answer(R"("content": "b", )" + name + ": []"), "x:1").messages.size(), 2U) << key;
  }
  EXPECT_THAT(refused(with_answer(R"("content": null, "tool_calls": [{"id": "x"}])")),
              HasSubstr("message 2: \"tool_calls\": tools are written by none"));
  for (const char* key : {"tools", "functions", "images", "documents", "system_prompt"})
    EXPECT_THAT(refused(text(R"({"messages": [{"role": "user", "content": "a"}], ")", key, R"(": ["x"]})")),
                StartsWith(text("f.jsonl:3: \"", key, "\": ")))
        << key;
  for (const char* flag : {R"("weight": 0)", R"("weight": 0.5)", R"("train": false)", R"("training": 1)"})
    EXPECT_THAT(refused(text(R"({"text": "a", )", flag, "}")),
                StartsWith(text("f.jsonl:3: ", flag, " of a whole example is not honoured")));
  EXPECT_THAT(refused(R"({"prompt": "a", "completion": "b", "label": false})"), HasSubstr("\"label\""));
}

TEST(ExampleKeys, WhatSaysNothingIsPassedOver) {
  std::set<std::string> ignored;
  const auto messages = [&](const std::string& keys) {
    return parse_example(R"({"messages": [{"role": "user", "content": "a"}], )" + keys + "}", "x:1", &ignored)
        .messages.size();
  };
  for (const char* keys :
       {R"("tools": "[]")", R"("tools": " [ ] ")", R"("tools": "null")", R"("tools": [])", R"("tools": null)",
        R"("documents": "{}")", R"("weight": 1)", R"("weight": 1.0)", R"("train": true)", R"("training": true)"})
    EXPECT_EQ(messages(keys), 1U) << keys;
  EXPECT_THAT(ignored, testing::IsEmpty());
  EXPECT_THAT(refused(R"({"messages": [{"role": "user", "content": "a"}], "tools": "[{\"name\": \"x\"}]"})"),
              HasSubstr("\"tools\": tools are written by none"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "user", "content": "a"}], "tools": "[}"})"), HasSubstr("\"tools\""));
  EXPECT_THAT(refused(with_answer(R"("content": "b", "reasoning_content": "[]")")), HasSubstr("\"reasoning_content\""))
      << "a text, not the text of a list";
}

TEST(ExampleKeys, ContentIsATextOrOnePartOfText) {
  EXPECT_EQ(parse_example(with_answer(R"("content": [{"type": "text", "text": "b"}])"), "x:1").messages[1].content,
            "b");
  for (const char* content : {R"([{"type": "image_url", "image_url": {"url": "x"}}])",
                              R"([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])", "[]", R"(["b"])"})
    EXPECT_THAT(refused(with_answer(text("\"content\": ", content))),
                HasSubstr("message 2: \"content\" is a list; taken are a text, or a list of one part"))
        << content;
}

TEST(ExampleKeys, SystemBesideMessagesIsTheFirstMessage) {
  EXPECT_EQ(parse_example(R"({"system": "s", "messages": [{"role": "user", "content": "a"}]})", "x:1").messages[0],
            (Message{"system", "s"}));
  EXPECT_THAT(refused(R"({"system": "s", "conversations": [{"from": "system", "value": "t"}]})"),
              HasSubstr("a message of the system and \"system\" beside it"));
}

TEST(ExampleKeys, OthersArePassedOverAndTold) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.jsonl",
      R"({"id": 7, "tools": [], "messages": [{"role": "user", "content": "a", "name": "Bo"}], "source": "x"})"
      "\n"
      R"({"text": "t", "score": 1})"
      "\n"
      R"({"text": "t", "late": 1})");
  EXPECT_THAT(ignored_keys(path, 1), ElementsAre("id", "messages[].name", "source"));
  EXPECT_THAT(ignored_keys(path, 2), ElementsAre("id", "messages[].name", "score", "source"));
}

}  // namespace
}  // namespace zero

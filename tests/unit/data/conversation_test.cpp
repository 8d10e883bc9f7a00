#include "zero/data/examples/conversation.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/fuzz/fuzz_words.h"
#include "tests/fuzz/mutations.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/data/examples/example_file.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<Message> messages_of(std::string_view line) {
  const Example example = parse_example(line, "f.jsonl:3");
  EXPECT_EQ(example.kind, Example::Kind::chat);
  EXPECT_EQ(example.place, "f.jsonl:3");
  return example.messages;
}

TEST(Conversation, RecognisesShapesByTheirKeys) {
  const std::vector<Message> turn = {{"user", "a"}, {"assistant", "b"}};
  EXPECT_EQ(messages_of(
                R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "id": 7})"),
            turn);
  EXPECT_EQ(messages_of(R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})"),
            turn);
  EXPECT_EQ(messages_of(R"({"instruction": "a", "input": "", "output": "b"})"), turn);
  const Example completion = parse_example(R"({"prompt": "p", "completion": "c"})", "x:1");
  EXPECT_EQ(completion.kind, Example::Kind::completion);
  EXPECT_EQ(completion.prompt + "|" + completion.text, "p|c");
  const Example plain = parse_example(R"({"text": "t\u00e9"})", "x:1");
  EXPECT_EQ(plain.kind, Example::Kind::text);
  EXPECT_EQ(plain.text, "té");
}

/// This happens in a table that joins several data sets.
TEST(Conversation, NullsAndEmptyListsDoNotTellTheShape) {
  const std::vector<Message> turn = {{"user", "a"}, {"assistant", "b"}};
  const std::string nulls =
      R"("messages": null, "conversations": null, "prompt": null, "completion": null, "instruction": null, "output": null, "text": null)";
  const auto joined = [&](const std::string& key, const std::string& value) {
    std::string line = "{" + nulls + "}";
    return line.replace(line.find("\"" + key + "\": null"), key.size() + 8, "\"" + key + "\": " + value);
  };
  EXPECT_EQ(
      messages_of(joined("messages",
                         R"([{"role": "user", "content": "a", "from": null}, {"role": "assistant", "content": "b"}])")),
      turn);
  EXPECT_EQ(messages_of(joined("conversations",
                               R"([{"from": "human", "value": "a", "role": null}, {"from": "gpt", "value": "b"}])")),
            turn);
  EXPECT_EQ(parse_example(joined("text", R"("t")"), "x:1").text, "t");
  EXPECT_EQ(
      messages_of(
          R"({"conversations": null, "instruction": "a", "output": "b", "input": null, "history": null, "system": null})"),
      turn);
  EXPECT_EQ(parse_example(R"({"messages": null, "prompt": "p", "completion": "c", "label": null})", "x:1").prompt, "p");
  EXPECT_EQ(parse_example(R"({"messages": [], "conversations": [], "text": "t"})", "x:1").text, "t");
  EXPECT_THAT(message_of<InputError>([&] { parse_example("{" + nulls + "}", "x:1"); }), HasSubstr("no known kind"));
}

// Tables of text columns have an empty text where others have a null.
TEST(Conversation, EmptyKeysDoNotDecideTheKind) {
  for (const char* empty :
       {R"("prompt": "", "completion": "")", R"("instruction": "", "output": "")", R"("messages": "")",
        R"("messages": {})", R"("conversations": "", "prompt": "", "completion": "")"}) {
    const Example example = parse_example(std::string("{") + empty + R"(, "text": "hi yo"})", "x:1");
    EXPECT_EQ(example.kind, Example::Kind::text) << empty;
    EXPECT_EQ(example.text, "hi yo") << empty;
  }
  const std::string turns = R"("messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])";
  for (const char* system : {"[]", "{}", "\"\"", "null"})
    EXPECT_EQ(parse_example("{" + turns + R"(, "system": )" + system + "}", "x:1").messages.size(), 2u) << system;
  EXPECT_EQ(
      parse_example(R"({"instruction": "a", "input": [], "output": "b", "history": ""})", "x:1").messages[0].content,
      "a");
  EXPECT_EQ(parse_example(R"({"prompt": "", "completion": "c", "text": ""})", "x:1").kind, Example::Kind::completion);
  EXPECT_THAT(message_of<InputError>([&] { parse_example(R"({"messages": ""})", "x:1"); }),
              HasSubstr("is an empty conversation"));
}

TEST(Conversation, NullsInsideOfAMessageSayNothingUnlessTheyAreData) {
  const Example example = parse_example(
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "image_url": null, "cache": {"ttl": null}}]}, )"
      R"({"role": "assistant", "content": null, "tool_calls": [{"id": null, "function": {"name": "f", "strict": null, "arguments": {"x": null}}}]}, )"
      R"({"role": "tool", "content": {"degrees": null}}]})",
      "x:1");
  EXPECT_EQ(example.messages[0].whole->dump(), R"({"role":"user","content":[{"type":"text","text":"a","cache":{}}]})");
  EXPECT_EQ(example.messages[1].whole->dump(),
            R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"x":null}}}]})");
  EXPECT_EQ(example.messages[2].whole->dump(), R"({"role":"tool","content":{"degrees":null}})");
}

TEST(Conversation, ConversationsMayHoldRolesAndContents) {
  EXPECT_EQ(
      messages_of(
          R"({"conversations": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0}], "tools": [{"name": "f"}]})"),
      (std::vector<Message>{{"user", "a"}, {"assistant", "b", false}}));
  EXPECT_THAT(message_of<InputError>([&] {
                parse_example(R"({"conversations": [{"role": "user", "content": "a"}, {"from": "gpt", "value": "b"}]})",
                              "x:1");
              }),
              HasSubstr("\"from\" is missing"));
}

TEST(Conversation, AlpacaTakesInputSystemAndHistory) {
  EXPECT_THAT(
      messages_of(R"({"instruction": "a", "input": "i", "output": "b", "system": "s", "history": [["q", "r"]]})"),
      ElementsAre(Message{"system", "s"}, Message{"user", "q"}, Message{"assistant", "r"}, Message{"user", "a\ni"},
                  Message{"assistant", "b"}));
}

TEST(Conversation, RefusesWithThePlaceAndTheRule) {
  const auto refused = [](std::string_view line) {
    const std::string message = message_of<InputError>([&] { parse_example(line, "f.jsonl:3"); });
    EXPECT_THAT(message, StartsWith("f.jsonl:3: ")) << line;
    return message;
  };
  EXPECT_THAT(refused(R"({"messages": [)"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refused("7"), HasSubstr("must be a JSON object"));
  for (const char* list : {"[1]", " [", "[{"})
    EXPECT_THAT(refused(list), HasSubstr("a file that is one list of examples is called .json"));
  EXPECT_THAT(refused(R"({"question": "x"})"),
              HasSubstr("no known kind of example: it has \"question\"; it must have messages"));
  EXPECT_THAT(refused(R"({"messages": []})"), HasSubstr("empty conversation"));
  EXPECT_THAT(refused(R"({"messages": {"role": "user"}})"), HasSubstr("must be a list"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "ipython", "content": "x"}]})"), HasSubstr("unknown role \"ipython\""));
  EXPECT_THAT(refused(R"({"conversations": [{"from": "tool", "value": "x"}]})"), HasSubstr("unknown role \"tool\""));
  EXPECT_THAT(refused(R"({"messages": [{"role": "human", "content": "x"}]})"), HasSubstr("unknown role"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "user", "content": null}]})"), HasSubstr("must be a text, not null"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "user"}]})"), HasSubstr("\"content\" is missing"));
  EXPECT_THAT(refused(R"({"conversations": []})"), HasSubstr("empty conversation"));
  EXPECT_THAT(refused(R"({"instruction": "a", "output": 5})"), HasSubstr("must be a text, not number"));
  EXPECT_THAT(refused(R"({"prompt": [{"role": "user", "content": "a"}], "completion": "b"})"),
              HasSubstr("messages of prompt and completion stand in one list, \"messages\""));
  EXPECT_THAT(refused(R"({"instruction": "a", "output": "b", "history": [["x"]]})"), HasSubstr("pairs of texts"));
  for (const char* call : {R"({"function": {"name": "f", "arguments": "{\"a\": "}})", R"({"arguments": "a = 1"})"})
    EXPECT_THAT(
        refused(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{}, )" +
                std::string(call) + "]}]}"),
        AllOf(HasSubstr("message 2: call 2: \"arguments\": not valid JSON"), HasSubstr("leave the example out")));
  EXPECT_THAT(refused(R"({"text": ")"
                      "\xff"
                      R"("})"),
              HasSubstr("byte 10 (0xFF) is not UTF-8"));
  EXPECT_THAT(refused(R"({"text": )" + std::string(100, '[') + std::string(100, ']') + "}"),
              HasSubstr("nested deeper"));
}

TEST(Conversation, ArgumentsOfACallAreAnythingThatIsJson) {
  for (const char* arguments : {R"({"a": 1})", R"("{\"a\": 1}")", R"("")", R"("7")", "null"})
    EXPECT_EQ(messages_of(R"({"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": )" +
                          std::string(arguments) + "}}]}]}")
                  .size(),
              1U)
        << arguments;
}

std::vector<std::string> texts_of(const std::string& path, std::int64_t cap = 1 << 20) {
  std::vector<std::string> texts;
  read_examples(
      path,
      [&](const Example& example) {
        texts.push_back(example.place.substr(example.place.rfind(':')) + example.text);
        return true;
      },
      cap);
  return texts;
}

TEST(ReadExamples, NumbersLinesAndPassesOverBlankOnes) {
  const TemporaryFolder folder;
  EXPECT_THAT(texts_of(folder.write("a.jsonl", "\xef\xbb\xbf{\"text\": \"x\"}\r\n\n  \n{\"text\": \"y\"}")),
              ElementsAre(":1x", ":4y"));
  EXPECT_THAT(message_of<InputError>([&] { texts_of(folder.write("b.jsonl", "{\"text\": \"x\"}\n\noops\n")); }),
              HasSubstr("b.jsonl:3: not valid JSON: parse error at byte 1: "))
      << "the file's line alone";
  EXPECT_THAT(message_of<InputError>([&] { texts_of(folder.write("c.jsonl", "\n \n")); }),
              HasSubstr("holds no example"));
  EXPECT_THAT(message_of<InputError>([&] { texts_of(folder.path("none.jsonl")); }), HasSubstr("none.jsonl"));
}

TEST(ReadExamples, CapsALineAndStopsWhenAsked) {
  const TemporaryFolder folder;
  const std::string line = "{\"text\": \"" + std::string(3 << 20, 'x') + "\"}\n";
  const std::string path = folder.write("long.jsonl", "{\"text\": \"\"}\n" + line + line);
  EXPECT_EQ(texts_of(path, 4 << 20).size(), 3U);
  EXPECT_THAT(message_of<InputError>([&] { texts_of(path, 1 << 20); }),
              HasSubstr("long.jsonl:2: the line is longer than 1048576 bytes"));
  int seen = 0;
  read_examples(path, [&](const Example&) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
}

// Any line is an example or an InputError.
TEST(Conversation, A100000MutatedLinesNeverCrash) {
  const std::vector<std::string> seeds = {
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a \u00e9 \ud83d\ude00"}, {"role": "assistant", "content": "b"}]})",
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "system": null})",
      R"({"instruction": "a", "input": "i", "output": "b", "history": [["q", "r"]]})",
      R"({"prompt": "p", "completion": "c"})",
      R"({"text": "t"})",
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": {"x": 1}}], "tools": "[{\"name\": \"f\"}]", "chat_template_kwargs": {"a": null}})"};
  Mutations mutations(1);
  int taken = 0, refused = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::string& seed = mutations.one_of(seeds);
    const std::string line = mutations.below(4) == 0 ? seed : mutations.of_bytes(seed, seeds, json_words());
    try {
      const Example example = parse_example(line, "x:1");
      EXPECT_EQ(example.kind == Example::Kind::chat, !example.messages.empty());
      ++taken;
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(taken, 20000);
  EXPECT_GT(refused, 20000);
}

}  // namespace
}  // namespace zero

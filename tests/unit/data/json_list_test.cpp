#include "zero/data/examples/json_list.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/data/examples/example_file.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> objects_of(std::string_view json, std::size_t part = 1 << 20, std::int64_t most = 1000) {
  std::vector<std::string> objects;
  JsonList list(
      "f.json",
      [&](std::string_view object, std::int64_t number) {
        objects.push_back(std::to_string(number) + std::string(object));
      },
      most);
  for (std::size_t at = 0; at < json.size(); at += part) list.add(json.substr(at, part));
  list.finish();
  return objects;
}

std::string refusal(std::string_view json) {
  return message_of<InputError>([&] { objects_of(json); });
}

TEST(JsonList, GivesItsObjectsHoweverItIsCut) {
  const std::string json = " [ {\"a\": \"}]{\\\"[\\\\\"} ,\n{\"b\": [{\"c\": []}, 1]},{}\n]\n";
  for (const std::size_t part : {1, 2, 3, 7, 1000})
    EXPECT_THAT(objects_of(json, part), ElementsAre("1{\"a\": \"}]{\\\"[\\\\\"}", "2{\"b\": [{\"c\": []}, 1]}", "3{}"))
        << part;
  EXPECT_THAT(objects_of("[]"), ElementsAre());
}

TEST(JsonList, RefusesWhatIsNoListOfObjects) {
  EXPECT_THAT(refusal("{\"text\": \"a\"}"),
              HasSubstr("f.json: does not begin with [; a .json file is one list of examples"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("f.json: is no object"));
  EXPECT_THAT(refusal("[{} {}]"), HasSubstr("f.json: behind row 1: neither a comma nor the end"));
  EXPECT_THAT(refusal("[{},]"), HasSubstr("behind row 1: is no object"));
  EXPECT_THAT(refusal("[{}] x"), HasSubstr("something follows the list"));
  for (const char* cut : {"", "[", "[{}", "[{\"a\": \"]", "[{},"})
    EXPECT_THAT(refusal(cut), HasSubstr("cut short")) << cut;
  EXPECT_THAT(refusal("[{}, {\"a\": \"" + std::string(2000, 'x') + "\"}]"),
              HasSubstr("row 2 is longer than 1000 bytes"));
}

TEST(ReadExamples, TakesAListWithTheNumberOfTheRow) {
  const TemporaryFolder folder;
  std::vector<std::string> seen;
  const auto take = [&](const Example& example) {
    seen.push_back(example.place.substr(example.place.rfind('/') + 1) + " " + example.messages.back().content);
    return true;
  };
  read_examples(
      folder.write(
          "a.json",
          "\xef\xbb\xbf[\n {\"instruction\": \"a\", \"input\": \"\", \"output\": \"b\", \"text\": \"ab\"},\n {\"instruction\": \"c\", \"output\": \"d\"}\n]"),
      take);
  EXPECT_THAT(seen, ElementsAre("a.json: row 1 b", "a.json: row 2 d"));
  EXPECT_THAT(
      message_of<InputError>([&] {
        read_examples(
            folder.write("b.json", R"([{"instruction": "a", "output": "b"}, {"instruction": 1, "output": ""}])"), take);
      }),
      HasSubstr("b.json: row 2: \"instruction\" must be a text, not number"));
  EXPECT_THAT(message_of<InputError>([&] { read_examples(folder.write("c.json", "[{\"text\": tru}]"), take); }),
              HasSubstr("c.json: row 1: not valid JSON"));
  EXPECT_THAT(message_of<InputError>([&] { read_examples(folder.write("d.json", "[]"), take); }),
              HasSubstr("holds no example"));
  seen.clear();
  read_examples(folder.write("e.json",
                             "\xef\xbb\xbf\n{\"instruction\": \"a\", \"output\": \"b\"}\n"
                             "{\"instruction\": \"c\", \"output\": \"d\"}"),
                take);
  EXPECT_THAT(seen, ElementsAre("e.json:2 b", "e.json:3 d")) << "one example per line";
  int count = 0;
  read_examples(folder.path("a.json"), [&](const Example&) { return ++count < 1; });
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace zero

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "models/text/tokenizer.h"
#include "zero/data/examples/conversation_encoder.h"

namespace zero {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string data = ZERO_TEST_DATA;

struct Counts {
  int equal = 0, masks = 0, refused = 0;
};

class ToolsGolden : public ::testing::TestWithParam<const char*> {};

/// One line of training data of a reference case.
std::string line_of(const Json& one) {
  Json line{{"messages", one["messages"]}};
  if (one.contains("tools")) line["tools"] = one["tools"];
  if (one.contains("variables")) line["chat_template_kwargs"] = one["variables"];
  return line.dump();
}

/// Why a case that transformers renders is no training data here.
constexpr const char* not_trained[] = {"only text is trained", "unknown role", "must be a text", "cannot be told"};

/// Tools, results of tools, calls and thoughts of training data give the ids that transformers' apply_chat_template
/// gives, and the masks of its generation blocks.
TEST_P(ToolsGolden, IdsAndMasksAreThoseOfTransformers) {
  const std::string folder = data + "/chat/" + GetParam();
  const Json file = parse_ordered_json(read_text_file(folder + "/cases.json"), folder);
  const std::string model = data + "/pipelines/" + file["tokenizer"].get<std::string>();
  const Tokenizer tokenizer = Tokenizer::load(model);
  const ConversationEncoder encoder(tokenizer, {model, folder + "/template.jinja", TrainOn::assistant});
  Counts counts;
  for (const Json& one : file["cases"]) {
    const std::string name = one["name"];
    try {
      const EncodedExample made = encoder.encode(parse_example(line_of(one), name));
      ASSERT_TRUE(one.contains("text")) << name;
      EXPECT_EQ(made.text, one["text"]) << name;
      EXPECT_EQ(made.ids, one["ids"].get<std::vector<std::int32_t>>()) << name;
      ++counts.equal;
      if (!one.contains("mask")) continue;
      auto mask = one["mask"].get<std::vector<std::uint8_t>>();
      if (!mask.empty()) mask[0] = 0;  // nothing stands before it
      EXPECT_EQ(made.trained, mask) << name;
      ++counts.masks;
    } catch (const InputError& error) {
      ++counts.refused;
      if (!one.contains("text")) continue;
      EXPECT_THAT(error.what(), AnyOf(HasSubstr(not_trained[0]), HasSubstr(not_trained[1]), HasSubstr(not_trained[2]),
                                      HasSubstr(not_trained[3]), HasSubstr("would be lost")))
          << name;
    }
  }
  EXPECT_GT(counts.equal, 5);
  EXPECT_TRUE(!file["generation"] || counts.masks == counts.equal);
}

INSTANTIATE_TEST_SUITE_P(Reference, ToolsGolden, ::testing::Values("brackets", "headers", "thoughts", "turns"));

}  // namespace
}  // namespace zero

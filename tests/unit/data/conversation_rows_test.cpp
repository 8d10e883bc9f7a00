#include "zero/data/conversation_rows.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "comm/error.h"
#include "comm/sim_world.h"
#include "models/tokenizer.h"
#include "models/unit.h"
#include "tests/unit/data/temporary_folder.h"
#include "zero/data/open_rows.h"
#include "zero/data/packing.h"
#include "zero/data/preview.h"

namespace zero {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string model = std::string(ZERO_TEST_DATA) + "/tinyllama-chat";

const Tokenizer& tokenizer() {
  static const Tokenizer loaded = Tokenizer::load(model);
  return loaded;
}

std::string chat(const std::string& question, const std::string& answer) {
  return nlohmann::json{{"messages", {{{"role", "user"}, {"content", question}}, {{"role", "assistant"}, {"content", answer}}}}}.dump() + "\n";
}

ConversationEncoder encoder(TrainOn train_on = TrainOn::assistant) { return {tokenizer(), {model, "", train_on}}; }

TEST(Pack, FillsRowsBestFitFirst) {
  EXPECT_THAT(pack({5, 3, 7, 2, 3}, 10), ElementsAre(ElementsAre(0, 3, 4), ElementsAre(1, 2)));
  EXPECT_THAT(pack({6, 4, 4, 6}, 10), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(pack({}, 10), ElementsAre());
}

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

TEST(ConversationEncoder, PromptsAndTextsHaveBosAndEosAndNoTemplate) {
  const TemporaryFolder bare;
  const ConversationEncoder plain(tokenizer(), {bare.path(""), ""});
  const EncodedExample completion = plain.encode(parse_example(R"({"prompt": "Hello", "completion": " World"})", "x:1"));
  EXPECT_THAT(completion.ids, ElementsAre(1, 15043, 2787, 2));
  EXPECT_THAT(completion.trained, ElementsAre(0, 0, 1, 1));
  const EncodedExample text = plain.encode(parse_example(R"({"text": "Hello World"})", "x:1"));
  EXPECT_EQ(text.ids, completion.ids);
  EXPECT_THAT(text.trained, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(message_of<InputError>([&] { plain.encode(parse_example(chat("a", "b"), "x:1")); }), HasSubstr("set data.chat_template to one of"));
}

TEST(ConversationEncoder, RefusesATemplateThatDoesNotFitTheTokenizer) {
  EXPECT_THAT(message_of<InputError>([&] { ConversationEncoder(tokenizer(), {model, "chatml"}); }), HasSubstr("<|im_end|>, which is no special token"));
  EXPECT_THAT(message_of<InputError>([&] { ConversationEncoder(tokenizer(), {model, "vicuna"}); }), HasSubstr("known templates: zephyr, llama-2"));
  const ConversationEncoder llama2(tokenizer(), {model, "llama-2"});
  EXPECT_THAT(message_of<InputError>([&] { llama2.encode(parse_example(R"({"messages": [{"role": "assistant", "content": "x"}]})", "x:9")); }),
              testing::StartsWith("x:9: message 1 is of the assistant where the template llama-2 wants user"));
}

struct Made {
  TemporaryFolder folder;
  std::string path;
  explicit Made(const std::string& lines) : path(folder.write("c.jsonl", lines)) {}
  ConversationRows rows(ConversationRowsOptions options) const {
    options.vocab_size = 32000;
    return {{path}, encoder(), options};
  }
};

TEST(ConversationRows, ARowIsTheExampleShiftedByOne) {
  const ConversationRows rows = Made(chat("Hello!", "Hi")).rows({.seq_len = 100});
  const EncodedExample example = encoder().encode(parse_example(chat("Hello!", "Hi"), "x:1"));
  const Row row = rows.row(0);
  ASSERT_EQ(row.ids.size(), example.ids.size() - 1);
  for (std::size_t t = 0; t < row.ids.size(); ++t) {
    EXPECT_EQ(row.ids[t], example.ids[t]);
    EXPECT_EQ(row.targets[t], example.trained[t + 1] ? example.ids[t + 1] : ignored_target);
  }
  EXPECT_TRUE(row.positions.empty());
  EXPECT_EQ(rows.trained_tokens(0), 2);
  EXPECT_EQ(rows.length(0), static_cast<std::int64_t>(row.ids.size()));
}

TEST(ConversationRows, CutsOrDropsWhatIsTooLongAndCountsIt) {
  const std::string words(400, 'x');
  const Made made(chat("a", "b") + chat("a", words) + chat(words, "b") + R"({"messages": [{"role": "user", "content": "a"}]})" + "\n");
  const ConversationRows cut = made.rows({.seq_len = 40}), dropped = made.rows({.seq_len = 40, .overlong = Overlong::drop});
  EXPECT_EQ(cut.size(), 2);
  EXPECT_EQ(cut.length(1), 40);
  EXPECT_EQ(cut.counts().examples, 4);
  EXPECT_EQ(cut.counts().truncated, 2);
  EXPECT_EQ(cut.counts().dropped_untrained, 2);  // one cut before its answer, one without an answer
  EXPECT_EQ(dropped.size(), 1);
  EXPECT_EQ(dropped.counts().dropped_overlong, 2);
  EXPECT_EQ(dropped.counts().dropped_untrained, 1);
  EXPECT_THAT(message_of<InputError>([&] { made.rows({.seq_len = 5}); }), HasSubstr("nothing is left to train"));
}

TEST(ConversationRows, PackingKeepsEveryDocumentWholeAndNumbered) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += chat("question " + std::string(static_cast<std::size_t>(i), 'q'), "answer " + std::to_string(i));
  const Made made(lines);
  const ConversationRows one = made.rows({.seq_len = 100}), packed = made.rows({.seq_len = 100, .packing = true});
  ASSERT_EQ(one.size(), 20);
  EXPECT_LT(packed.size(), 10);
  std::vector<std::vector<std::int64_t>> apart, together;
  std::int64_t trained = 0;
  for (std::int64_t r = 0; r < one.size(); ++r) {
    apart.push_back(one.row(r).ids);
    apart.push_back(one.row(r).targets);
    trained += one.trained_tokens(r);
  }
  for (std::int64_t r = 0; r < packed.size(); ++r) {
    const Row row = packed.row(r);
    EXPECT_LE(row.ids.size(), 100U);
    ASSERT_EQ(row.documents.size(), row.ids.size());
    trained -= packed.trained_tokens(r);
    for (std::size_t t = 0; t < row.ids.size();) {
      std::vector<std::int64_t> ids, targets;
      const std::int32_t document = row.documents[t];
      for (std::int64_t position = 0; t < row.ids.size() && row.documents[t] == document; ++t, ++position) {
        EXPECT_EQ(row.positions[t], position);
        ids.push_back(row.ids[t]);
        targets.push_back(row.targets[t]);
      }
      together.push_back(ids);
      together.push_back(targets);
    }
  }
  EXPECT_EQ(trained, 0);
  std::sort(apart.begin(), apart.end());
  std::sort(together.begin(), together.end());
  EXPECT_EQ(apart, together);
}

TEST(Preview, ShowsTokensAndWhatIsTrained) {
  const EncodedExample example = encoder().encode(parse_example(chat("Hello!", "Hi"), "c.jsonl:1"));
  EXPECT_THAT(preview_text(example, tokenizer()), HasSubstr("c.jsonl:1: 20 tokens, 2 trained (*)\n"));
  EXPECT_THAT(preview_text(example, tokenizer()), HasSubstr("\n *      2  </s>\n"));
  const auto parsed = nlohmann::json::parse(preview_json(example));
  EXPECT_EQ(parsed["text"], example.text);
  EXPECT_EQ(parsed["ids"].size(), parsed["trained"].size());
}

TEST(OpenRows, TakesConversationsOrStreamsButNotBoth) {
  const TemporaryFolder folder;
  DataOptions options;
  options.files = {folder.write("c.jsonl", chat("a", "b"))};
  options.seq_len = 64;
  options.vocab_size = 32000;
  options.tokenizer = &tokenizer();
  options.encoder = text_encoder_of(tokenizer());
  options.conversations.model_directory = model;
  options.cache_folder = folder.path("cache");
  SimWorld(2).run([&](Communicator& comm, int) {
    EXPECT_EQ(open_rows(options, comm)->size(), 1);
    DataOptions other = options;
    other.files = {folder.path("t.txt")};
    EXPECT_THAT(message_of<Error>([&] { open_rows(other, comm); }), HasSubstr("t.txt does not exist"));
    other.files = {folder.path("c.jsonl"), folder.path("t.txt")};
    EXPECT_THAT(message_of<Error>([&] { open_rows(other, comm); }), HasSubstr("cannot be joined"));
    other = options;
    other.tokenizer = nullptr;
    EXPECT_THAT(message_of<Error>([&] { open_rows(other, comm); }), HasSubstr("needs a tokenizer"));
    other = options;
    other.vocab_size = 1000;
    EXPECT_THAT(message_of<Error>([&] { open_rows(other, comm); }), HasSubstr("beyond the model's vocabulary of 1000"));
  });
  EXPECT_EQ(preview_examples(options, 3).size(), 1U);
}

}  // namespace
}  // namespace zero

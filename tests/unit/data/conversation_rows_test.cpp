#include "zero/data/examples/conversation_rows.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "comm/sim/sim_world.h"
#include "models/text/chat_template.h"
#include "models/unit.h"
#include "tests/unit/data/small_chats.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/data/examples/example_file.h"
#include "zero/data/open_rows.h"
#include "zero/data/preview.h"
#include "zero/data/rows/packing.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Made {
  TemporaryFolder folder;
  std::string path;
  explicit Made(const std::string& lines) : path(folder.write("c.jsonl", lines)) {}
  std::shared_ptr<const ConversationRows> rows(ConversationRowsOptions options) const {
    options.vocab_size = 32000;
    DataOptions data;
    data.files = {path};
    data.seq_len = options.seq_len;
    data.vocab_size = options.vocab_size;
    data.cache_folder = folder.path("cache");
    data.tokenizer = &tokenizer();
    data.conversations = {model, ""};
    data.overlong = options.overlong;
    data.packing = options.packing;
    std::shared_ptr<const RowSource> rows;
    SimWorld(1).run([&](Communicator& comm, int) { rows = open_rows(data, comm); });
    return std::dynamic_pointer_cast<const ConversationRows>(rows);
  }
};

TEST(Pack, FillsRowsBestFitFirst) {
  EXPECT_THAT(pack({5, 3, 7, 2, 3}, 10), ElementsAre(ElementsAre(0, 3, 4), ElementsAre(1, 2)));
  EXPECT_THAT(pack({6, 4, 4, 6}, 10), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(pack({}, 10), ElementsAre());
}

TEST(ConversationRows, ARowIsTheExampleShiftedByOne) {
  const Made made(chat("Hello!", "Hi"));
  const auto opened = made.rows({.seq_len = 100});
  const ConversationRows& rows = *opened;
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
  const Made made(chat("a", "b") + chat("a", words) + chat(words, "b") +
                  R"({"messages": [{"role": "user", "content": "a"}]})" + "\n");
  const auto cut_rows = made.rows({.seq_len = 40}),
             dropped_rows = made.rows({.seq_len = 40, .overlong = Overlong::drop});
  const ConversationRows &cut = *cut_rows, &dropped = *dropped_rows;
  EXPECT_EQ(cut.size(), 2);
  EXPECT_EQ(cut.length(1), 40);
  EXPECT_EQ(cut.counts().examples, 4);
  EXPECT_EQ(cut.counts().truncated, 2);
  EXPECT_THAT(cut.warning(), HasSubstr("2 of 4 examples are longer than training.seq_len = 40"));
  EXPECT_EQ(cut.counts().dropped_untrained, 2);  // one cut before its answer, one without an answer
  EXPECT_EQ(dropped.size(), 1);
  EXPECT_EQ(dropped.counts().dropped_overlong, 2);
  EXPECT_EQ(dropped.counts().dropped_untrained, 1);
}

TEST(ConversationRows, ARemedyIsNamedIfNothingIsLeftToTrain) {
  const Made overlong(chat(std::string(400, 'x'), "b")),
      untrained(
          R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0}]})"
          "\n");
  const auto refusal = [](const Made& made, Overlong overlong) {
    return message_of<InputError>([&] { made.rows({.seq_len = 40, .overlong = overlong}); });
  };
  EXPECT_THAT(refusal(overlong, Overlong::truncate),
              AllOf(HasSubstr("nothing is left to train"), HasSubstr("beyond training.seq_len: raise it")));
  EXPECT_THAT(refusal(overlong, Overlong::drop), HasSubstr("raise training.seq_len, or keep the starts"));
  EXPECT_THAT(refusal(untrained, Overlong::truncate),
              AllOf(HasSubstr("look with --preview"), Not(HasSubstr("raise training.seq_len"))));
}

// 1000 words in rows of 40: nothing is lost, packed or not.
TEST(ConversationRows, LongTextsBecomeWindows) {
  std::string words;
  for (int i = 0; i < 1000; ++i) words += "word ";
  const std::string line = nlohmann::json{{"text", words}}.dump() + "\n";
  const Made made(line + R"({"text": "Hello"})" + "\n");
  const EncodedExample whole = encoder().encode(parse_example(line, "x:1"));
  for (const bool packing : {false, true}) {
    const auto kept = made.rows({.seq_len = 40, .packing = packing});
    const ConversationRows& rows = *kept;
    std::int64_t trained = 0;
    std::vector<std::int64_t> targets;
    for (std::int64_t r = 0; r < rows.size(); ++r) {
      trained += rows.trained_tokens(r);
      EXPECT_LE(rows.length(r), 40);
      for (const std::int64_t target : rows.row(r).targets) targets.push_back(target);
    }
    EXPECT_EQ(trained, static_cast<std::int64_t>(whole.ids.size()) - 1 + 2);
    EXPECT_TRUE(packing || std::equal(whole.ids.begin() + 1, whole.ids.end(), targets.begin()));
    EXPECT_EQ(rows.counts().cut, 1);
    EXPECT_EQ(rows.warning(), "");
  }
}

TEST(ConversationRows, PackingKeepsEveryDocumentWholeAndNumbered) {
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += chat("question " + std::string(static_cast<std::size_t>(i), 'q'), "answer " + std::to_string(i));
  const Made made(lines);
  const auto one_rows = made.rows({.seq_len = 100}), packed_rows = made.rows({.seq_len = 100, .packing = true});
  const ConversationRows &one = *one_rows, &packed = *packed_rows;
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

// A list of several chunks, written as people and programs write lists, gives the rows of the same examples a line
// each.
TEST(ConversationRows, AListGivesTheSameRowsAsLines) {
  const TemporaryFolder folder;
  std::string lines, list = "\xef\xbb\xbf [";
  for (int i = 0; lines.size() < 2500 << 10; ++i) {
    const std::string line = chat("a, {question} [" + std::to_string(i) + "]\n, \"",
                                  std::string(static_cast<std::size_t>(i % 300), ',') + "yes}");
    lines += line;
    list += (i == 0 ? "" : i % 3 ? ",\n " : " ,") + (i % 2 ? nlohmann::json::parse(line).dump(2) : line);
  }
  list += "\n]\n";
  DataOptions options;
  options.seq_len = 64;
  options.vocab_size = 32000;
  options.tokenizer = &tokenizer();
  options.conversations.model_directory = model;
  options.cache_folder = folder.path("cache");
  const auto rows_of = [&](const std::string& file) {
    options.files = {file};
    std::shared_ptr<const RowSource> rows;
    SimWorld(1).run([&](Communicator& comm, int) { rows = open_rows(options, comm); });
    return rows;
  };
  const auto expected = rows_of(folder.write("a.jsonl", lines)), got = rows_of(folder.write("a.json", list));
  ASSERT_EQ(got->size(), expected->size());
  for (std::int64_t row = 0; row < got->size(); ++row) ASSERT_EQ(got->row(row).ids, expected->row(row).ids) << row;
  const std::string bad = list.substr(0, list.size() - 3) + ", {\"text\": 3}\n]\n";
  const std::string number = "b.json: row " + std::to_string(got->size() + 1) + ":";
  EXPECT_THAT(message_of<InputError>([&] { rows_of(folder.write("b.json", bad)); }), HasSubstr(number));
  EXPECT_THAT(message_of<InputError>([&] { rows_of(folder.write("c.json", list.substr(0, list.size() - 3))); }),
              HasSubstr("does not end"));
  EXPECT_THAT(message_of<InputError>([&] { rows_of(folder.write("d.json", "[]")); }), HasSubstr("no example"));
}

// A file of several chunks: the rows are those of the examples one by one. The file is tokenised once for all ranks,
// and again when something changed that ids or masks depend on.
TEST(ConversationRows, AreTheSameOnAllRanksAndComeFromACacheThatFits) {
  const TemporaryFolder folder, chats;
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"})
    std::filesystem::copy(model + "/" + name, chats.path(name));
  std::string lines = "\xef\xbb\xbf";
  for (int i = 0; lines.size() < 1200 << 10; ++i)
    lines += chat("question " + std::to_string(i), std::string(static_cast<std::size_t>(i % 300), ' ') + "yes") +
             (i % 5 ? "" : "\n");
  DataOptions options;
  options.files = {folder.write("a.jsonl", lines), folder.write("b.jsonl", chat("Hello!", "Hi"))};
  options.seq_len = 64;
  options.vocab_size = 32000;
  options.tokenizer = &tokenizer();
  options.conversations.model_directory = chats.path("");
  options.conversations.chat_template = "zephyr";
  options.cache_folder = folder.path("cache");
  const auto times = [&] {
    std::vector<std::filesystem::file_time_type> times;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path("cache")))
      times.push_back(entry.last_write_time());
    std::sort(times.begin(), times.end());
    return times;
  };
  std::vector<EncodedExample> expected;
  const ConversationEncoder plain = encoder();
  for (const std::string& file : options.files)
    read_examples(file, [&](const Example& example) {
      expected.push_back(plain.encode(example));
      return true;
    });
  const auto open = [&] {
    SimWorld(2).run([&](Communicator& comm, int rank) {
      const auto rows = open_rows(options, comm);
      ASSERT_EQ(rows->size(), static_cast<std::int64_t>(expected.size()));
      for (std::int64_t index = rank; index < rows->size() && options.conversations.train_on == TrainOn::assistant;
           index += 2) {
        const EncodedExample& encoded = expected[static_cast<std::size_t>(index)];
        const Row row = rows->row(index);
        ASSERT_EQ(row.ids.size() + 1, std::min<std::size_t>(65, encoded.ids.size())) << encoded.place;
        for (std::size_t t = 0; t < row.ids.size(); ++t) {
          ASSERT_EQ(row.ids[t], encoded.ids[t]) << encoded.place;
          ASSERT_EQ(row.targets[t], encoded.trained[t + 1] ? encoded.ids[t + 1] : ignored_target) << encoded.place;
        }
      }
    });
    return times();
  };
  const auto first = open();
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(open(), first);
  options.packing = true;
  SimWorld(1).run([&](Communicator& comm, int) { open_rows(options, comm); });
  EXPECT_EQ(times(), first);
  options.packing = false;
  options.conversations.train_on = TrainOn::all;
  EXPECT_EQ(open().size(), 4U);
  options.conversations.chat_template = "llama-2";
  EXPECT_EQ(open().size(), 6U);
  options.conversations.chat_template = "";
  std::ofstream(chats.path("chat_template.jinja"))
      << "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}";
  EXPECT_NE(fingerprint_of(tokenizer(), {chats.path(""), "", TrainOn::all}),
            fingerprint_of(tokenizer(), {model, "", TrainOn::all}));
}

TEST(ConversationRows, NameTheFirstLineThatIsWrongOnAllRanks) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 9000; ++i)
    lines += i == 8000 || i == 8500
                 ? "{\n"
                 : chat("question " + std::to_string(i), "answer to it, at some length so that there are chunks");
  DataOptions options;
  options.files = {folder.write("a.jsonl", lines)};
  options.seq_len = 64;
  options.vocab_size = 32000;
  options.tokenizer = &tokenizer();
  options.conversations.model_directory = model;
  options.cache_folder = folder.path("cache");
  SimWorld(2).run([&](Communicator& comm, int) {
    EXPECT_THAT(message_of<InputError>([&] { open_rows(options, comm); }), HasSubstr("a.jsonl:8001: "));
  });
  options.files = {folder.write("long.jsonl", chat("a", "b") + std::string(18 << 20, 'x'))};
  SimWorld(2).run([&](Communicator& comm, int) {
    EXPECT_THAT(message_of<InputError>([&] { open_rows(options, comm); }),
                HasSubstr("long.jsonl:2: the line is longer than 16777216 bytes"));
  });
  EXPECT_FALSE(std::filesystem::exists(folder.path("cache")));
}

TEST(Preview, ShowsTokensAndWhatIsTrained) {
  const EncodedExample example = encoder().encode(parse_example(chat("Hello!", "Hi"), "c.jsonl:1"));
  EXPECT_THAT(preview_text(example, tokenizer()), HasSubstr("c.jsonl:1: 20 tokens, 2 trained (*)\n"));
  EXPECT_THAT(preview_text(example, tokenizer()), HasSubstr("\n *      2  </s>\n"));
  const auto parsed = nlohmann::json::parse(preview_json(example));
  EXPECT_EQ(parsed["text"], example.text);
  EXPECT_EQ(parsed["ids"].size(), parsed["trained"].size());
}

TEST(Preview, SaysWhatSeqLenLeavesOut) {
  const TemporaryFolder folder;
  DataOptions options;
  options.files = {folder.write("c.jsonl", chat("a", "It is a very long answer.") +
                                               chat("one two three four five six seven", "b") + chat("a", "b") +
                                               R"({"messages": [{"role": "user", "content": "a"}]})")};
  options.seq_len = 20;
  options.vocab_size = 32000;
  options.tokenizer = &tokenizer();
  options.conversations.model_directory = model;
  const auto notes = [&] {
    std::vector<std::string> found;
    for (const EncodedExample& example : preview_examples(options, 9)) found.push_back(example.note);
    return found;
  };
  const std::string nothing = "left out, since nothing of it is trained";
  EXPECT_THAT(notes(),
              ElementsAre("the start of 25: the rest lies beyond training.seq_len = 20",
                          "left out, since all that is trained lies beyond training.seq_len = 20", "", nothing));
  options.overlong = Overlong::drop;
  const std::string beyond = "left out, since it goes beyond training.seq_len = 20";
  EXPECT_THAT(notes(), ElementsAre(beyond, beyond, "", nothing));
  const EncodedExample first = preview_examples(options, 1).front();
  EXPECT_THAT(preview_text(first, tokenizer()), HasSubstr(" trained (*); " + beyond + "\n"));
  EXPECT_EQ(nlohmann::json::parse(preview_json(first))["note"], beyond);
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

#include "zero/data/examples/preference_pair.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/log.h"
#include "comm/sim/sim_world.h"
#include "models/loss/orpo_loss.h"
#include "models/unit.h"
#include "tests/unit/data/small_chats.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/data/examples/example_reader.h"
#include "zero/data/examples/example_windows.h"
#include "zero/data/open_rows.h"
#include "zero/data/rows/chosen_rows.h"
#include "zero/data/rows/held_out_rows.h"
#include "zero/data/rows/reference_rows.h"

namespace zero {
namespace preference_pair_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& line) {
  return message_of<InputError>([&] { parse_pair(line, "p.jsonl:3"); });
}

TEST(PreferencePair, TextsWithAPromptAreCompletions) {
  const PreferencePair pair = parse_pair(R"({"prompt": "a ", "chosen": "b", "rejected": "c"})", "x:1");
  EXPECT_EQ(pair.chosen.kind, Example::Kind::completion);
  EXPECT_EQ(pair.chosen.prompt + "|" + pair.chosen.text, "a |b");
  EXPECT_EQ(pair.rejected.prompt + "|" + pair.rejected.text, "a |c");
  EXPECT_EQ(pair.rejected.place, "x:1 (rejected)");
}

TEST(PreferencePair, ThePromptIsWhatBothTextsBeginWith) {
  const auto divided = [](const std::string& chosen, const std::string& rejected) {
    const PreferencePair pair =
        parse_pair(R"({"chosen": ")" + chosen + R"(", "rejected": ")" + rejected + "\"}", "x:1");
    EXPECT_EQ(pair.chosen.prompt, pair.rejected.prompt);
    return pair.chosen.prompt + "|" + pair.chosen.text + "|" + pair.rejected.text;
  };
  EXPECT_EQ(divided("Q: hi A: yes", "Q: hi A: no"), "Q: hi A:| yes| no");
  EXPECT_EQ(divided("Q: hi A: yes", "Q: hi A: yesterday"), "Q: hi A: ye|s|sterday");
  EXPECT_EQ(divided("Q é", "Q è"), "Q| é| è") << "a character is not divided";
  EXPECT_THAT(refusal_of(R"({"chosen": "a", "rejected": "b"})"), HasSubstr("name the prompt"));
}

std::string words_of(const Example& example) {
  std::string words;
  for (const Message& message : example.messages)
    words += message.role.substr(0, 1) + ":" + message.content + (message.trained == false ? "- " : " ");
  return words;
}

TEST(PreferencePair, MessagesBecomeTwoConversations) {
  const std::string user = R"({"role": "user", "content": "q"})",
                    first = R"({"role": "assistant", "content": "f", "weight": 1})",
                    good = R"({"role": "assistant", "content": "g", "train": false})",
                    bad = R"({"role": "assistant", "content": "b"})";
  const std::string prompt = "[" + user + "," + first + "," + user + "]";
  for (const std::string& line :
       {R"({"prompt": )" + prompt + R"(, "chosen": [)" + good + R"(], "rejected": [)" + bad + "]}",
        R"({"messages": )" + prompt + R"(, "chosen": )" + good + R"(, "rejected": )" + bad + "}",
        R"({"prompt": "q", "chosen": [)" + user + "," + first + "," + user + "," + good + R"(], "rejected": [)" + user +
            "," + first + "," + user + "," + bad + "]}"}) {
    const PreferencePair pair = parse_pair(line, "x:1");
    EXPECT_EQ(words_of(pair.chosen), "u:q a:f- u:q a:g ") << line;
    EXPECT_EQ(words_of(pair.rejected), "u:q a:f- u:q a:b ") << line;
  }
  const PreferencePair asked =
      parse_pair(R"({"prompt": "q", "system": "s", "chosen": )" + good + R"(, "rejected": )" + bad + "}", "x:1");
  EXPECT_EQ(words_of(asked.chosen), "s:s u:q a:g ");
  const PreferencePair from = parse_pair(
      R"({"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "g"}, "rejected": {"from": "gpt", "value": "b"}})",
      "x:1");
  EXPECT_EQ(words_of(from.rejected), "u:q a:b ");
}

// UltraFeedback's rows: the prompt, the whole conversations, and the chosen one once more.
TEST(PreferencePair, WholeConversationsHoldTheirPrompt) {
  const std::string user = R"({"role": "user", "content": "q"})", good = R"({"role": "assistant", "content": "g"})",
                    bad = R"({"role": "assistant", "content": "b"})";
  const std::string sides = R"("chosen": [)" + user + "," + good + R"(], "rejected": [)" + user + "," + bad + "]";
  for (const std::string& more : {R"("prompt": "q", "messages": [)" + user + "," + good + "], ",
                                  R"("prompt": [)" + user + "], ", std::string()}) {
    const PreferencePair pair = parse_pair("{" + more + sides + "}", "x:1");
    EXPECT_EQ(words_of(pair.chosen), "u:q a:g ") << more;
    EXPECT_EQ(words_of(pair.rejected), "u:q a:b ") << more;
  }
  EXPECT_THAT(refusal_of(R"({"prompt": "another", )" + sides + "}"), HasSubstr("\"prompt\" is none of the messages"));
}

TEST(PreferencePair, TextsMayRepeatTheirPrompt) {
  const PreferencePair pair = parse_pair(R"({"prompt": "Q: ", "chosen": "Q: yes", "rejected": "Q: no"})", "x:1");
  EXPECT_EQ(pair.chosen.prompt + "|" + pair.chosen.text + "|" + pair.rejected.text, "Q: |yes|no");
}

TEST(PreferencePair, NoPromptIsLostInSilence) {
  EXPECT_THAT(refusal_of(R"({"question": "q", "chosen": "Sure, a", "rejected": "Sure, b"})"),
              HasSubstr("\"question\" is not read: rename it to \"prompt\""));
  EXPECT_THAT(refusal_of(R"({"system": "s", "prompt": "q", "chosen": "a", "rejected": "b"})"), HasSubstr("\"system\""));
  EXPECT_THAT(refusal_of(R"({"prompt": "q", "choosen": "a", "rejected": "b"})"),
              HasSubstr(R"(lacks "chosen"; it has "prompt", "choosen", "rejected")"));
  EXPECT_THAT(refusal_of(R"({"prompt": "q", "completion": "a", "label": true})"),
              HasSubstr("preference.method = \"kto\""));
}

TEST(PreferencePair, OtherLinesAreRefusedByName) {
  EXPECT_THAT(refusal_of(R"({"prompt": "a", "completion": "b"})"), HasSubstr("p.jsonl:3"));
  EXPECT_THAT(refusal_of(R"({"chosen": "xa", "rejected": [{"role": "user", "content": "x"}]})"),
              HasSubstr("both be texts"));
  EXPECT_THAT(refusal_of(R"({"chosen": [], "rejected": "x"})"), HasSubstr("must be a text"));
  EXPECT_THAT(refusal_of(R"({"chosen": [1], "rejected": [2], "prompt": []})"), HasSubstr("p.jsonl:3"));
  EXPECT_THAT(refusal_of("[1]"), HasSubstr("a file that is one list of examples is called .json"));
  EXPECT_THAT(refusal_of("7"), HasSubstr("must be an object"));
  std::set<std::string> ignored;
  parse_pair(R"({"prompt": "a", "chosen": "b", "rejected": "c", "score_chosen": 4.5, "id": 7})", "x:1", &ignored);
  EXPECT_THAT(ignored, ElementsAre("id", "score_chosen"));
}

TEST(PreferencePair, KnowsEqualAndBlankAnswers) {
  const std::string turn = R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "g"}])";
  for (const std::string& answer : {std::string(R"("xa")"), turn}) {
    const std::string line = R"({"chosen": )" + answer + R"(, "rejected": )" + answer + "}";
    const PreferencePair pair = parse_pair(line, "p.jsonl:3");
    EXPECT_TRUE(pair.are_equal) << line;
    EXPECT_EQ(pair.chosen.place, "p.jsonl:3 (chosen)");
    EXPECT_TRUE(parse_judged(line, "p.jsonl:3").empty());
  }
  const auto blank = [](const std::string& chosen, const std::string& rejected) {
    const PreferencePair pair =
        parse_pair(R"({"prompt": "p", "chosen": )" + chosen + R"(, "rejected": )" + rejected + "}", "x:1");
    return std::string(pair.chosen_is_blank ? "b" : "-") + (pair.rejected_is_blank ? "b" : "-");
  };
  EXPECT_EQ(blank(R"("a")", R"("")"), "-b");
  EXPECT_EQ(blank(R"(" \n\t")", R"("b")"), "b-");
  const std::string message = R"({"role": "assistant", "content": ")";
  EXPECT_EQ(blank(message + " \"}", message + "b\"}"), "b-");
  EXPECT_TRUE(parse_judged(R"({"prompt": "p", "completion": "", "label": true})", "x:1").front().is_blank);
}

TEST(PreferencePair, PlacesHaveTheirNumber) {
  EXPECT_EQ(number_in_place("a (1)/p.jsonl:17"), 17);
  EXPECT_EQ(number_in_place("p.json: row 3 (chosen)"), 3);
  EXPECT_EQ(number_in_place(""), 0);
  for (const ExampleForm form : {ExampleForm::lines, ExampleForm::list})
    EXPECT_EQ(number_in_place(place_of("p.json", form, 12)), 12);
}

TEST(PreferencePair, EverythingAfterThePromptIsTrained) {
  const EncodedPair pair = encode_pair(
      encoder(),
      parse_pair(
          R"({"prompt": [{"role": "user", "content": "Hello!"}], "chosen": {"role": "assistant", "content": "Hi"},
                         "rejected": {"role": "assistant", "content": "No no"}})",
          "x:1"));
  for (const EncodedExample* one : {&pair.chosen, &pair.rejected}) {
    const auto first = std::ranges::find(one->trained, 1);
    EXPECT_GT(first - one->trained.begin(), 1);
    EXPECT_TRUE(std::all_of(first, one->trained.end(), [](int flag) { return flag == 1; }));
  }
}

TEST(TrainedPair, CutsOrDropsLongSequences) {
  const auto sequence = [](int prompt, int answer) {
    EncodedExample made;
    for (int i = 0; i < prompt + answer; ++i) {
      made.ids.push_back(i);
      made.trained.push_back(i >= prompt);
    }
    made.text = "whole";
    return made;
  };
  const EncodedPair pair{sequence(4, 3), sequence(4, 8)};
  ExampleCounts counts;
  EXPECT_EQ(trained_pair(pair, 11, Overlong::drop, counts)->rejected.ids.size(), 12u);
  EXPECT_EQ(counts.truncated + counts.dropped_overlong, 0);
  const auto cut = trained_pair(pair, 8, Overlong::truncate, counts);
  EXPECT_EQ(cut->chosen.ids.size(), 7u);
  EXPECT_EQ(cut->rejected.ids.size(), 9u);
  EXPECT_EQ(counts.lost_tokens, 3);
  EXPECT_FALSE(trained_pair(pair, 8, Overlong::drop, counts));
  EXPECT_EQ(counts.dropped_overlong, 1);
  EXPECT_FALSE(trained_pair({sequence(4, 3), sequence(9, 2)}, 8, Overlong::truncate, counts))
      << "nothing rejected is left";
  EXPECT_EQ(counts.dropped_untrained, 1);
  EXPECT_EQ(counts.examples, 4);
}

TEST(TrainedPair, LeavesOutEqualAnswers) {
  EncodedPair pair;
  pair.chosen.place = "p.jsonl:17 (chosen)";
  pair.chosen.ids = {1, 2, 3, 4, 5}, pair.rejected.ids = {1, 2, 3, 4, 6};
  pair.chosen.trained = pair.rejected.trained = {0, 0, 1, 1, 1};
  ExampleCounts counts;
  EXPECT_TRUE(trained_pair(pair, 4, Overlong::truncate, counts));
  EXPECT_FALSE(trained_pair(pair, 3, Overlong::truncate, counts)) << "they differ behind the cut";
  ExampleCounts later;
  later.examples = 1, later.blank = 1, later.first_blank = 20, later.first_equal = 19;
  counts += later;
  EXPECT_EQ(counts.dropped_equal, 1);
  EXPECT_EQ(counts.first_equal, 17);
  EXPECT_EQ(counts.first_blank, 20);
  const std::string warning = warning_of(counts, 3, {.untrained = "", .equal = "p.jsonl:17", .blank = "p.jsonl:20"});
  EXPECT_THAT(warning, HasSubstr("1 of 3 examples are lost: 1 have equal answers in their first 3 tokens (the first: "
                                 "p.jsonl:17)"));
  EXPECT_THAT(warning, HasSubstr("In 1 of 3 examples an answer is empty or white space (the first: p.jsonl:20)"));
}

std::shared_ptr<const RowSource> rows_of(const TemporaryFolder& folder, const std::string& lines, ExampleUse use,
                                         PairForm pairs = {}) {
  DataOptions data;
  data.files = {folder.write("p.jsonl", lines)};
  data.seq_len = 64;
  data.vocab_size = 32000;
  data.cache_folder = folder.path("cache");
  data.tokenizer = &tokenizer();
  data.conversations = {model, ""};
  data.use = use;
  data.pairs = pairs;
  std::shared_ptr<const RowSource> rows;
  SimWorld(1).run([&](Communicator& comm, int) { rows = open_rows(data, comm); });
  return rows;
}

struct Made {
  TemporaryFolder folder;

  std::shared_ptr<const RowSource> rows(PairForm form, int count = 3) {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += R"({"prompt": "Hello", "chosen": " World)" + std::string(std::size_t(i), '!') +
               R"(", "rejected": " no"})" + "\n";
    return rows_of(folder, lines, ExampleUse::pair, form);
  }
};

TEST(PairRows, ARowIsAPair) {
  Made made;
  const auto rows = made.rows({});
  ASSERT_EQ(rows->size(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Row row = rows->row(i);
    EXPECT_EQ(std::ssize(row.ids), rows->length(i));
    EXPECT_EQ(row.documents.front(), 0);
    EXPECT_EQ(row.documents.back(), 1);
    std::int64_t trained = 0, first = 0;
    for (std::size_t t = 0; t < row.ids.size(); ++t) {
      const bool goes_on = t > 0 && row.documents[t] == row.documents[t - 1];
      EXPECT_EQ(row.positions[t], goes_on ? row.positions[t - 1] + 1 : 0);
      if (row.targets[t] == ignored_target) continue;
      ++trained;
      first += row.documents[t] == 0;
    }
    EXPECT_EQ(rows->trained_tokens(i), trained);
    EXPECT_EQ(rows->first_trained(i), first);
    EXPECT_GT(trained, first);
  }
}

TEST(PairRows, MayTrainTheChosenPrompt) {
  Made made;
  const auto answers = made.rows({}), prompts = made.rows({PairTargets::chosen_prompts});
  EXPECT_THAT(prompts->named_tensors(), ElementsAre(answers_name));
  for (std::int64_t i = 0; i < 3; ++i) {
    const Row plain = answers->row(i), row = prompts->row(i);
    EXPECT_EQ(row.ids, plain.ids);
    std::int64_t trained = 0, first = 0;
    for (std::size_t t = 0; t < row.ids.size(); ++t) {
      EXPECT_EQ(row.named_of_tokens.at(answers_name)[t], plain.targets[t] == ignored_target ? 0 : 1);
      EXPECT_TRUE(row.documents[t] == 1 || row.targets[t] != ignored_target);
      trained += row.targets[t] != ignored_target;
      first += row.documents[t] == 0;
    }
    EXPECT_EQ(prompts->trained_tokens(i), trained);
    EXPECT_EQ(prompts->first_trained(i), first);
  }
}

/// The ids and targets of a document after those of its trunk, as "id@position>target".
std::vector<std::string> sequence_of(const Row& row, std::int32_t document) {
  std::vector<std::string> tokens;
  for (std::size_t t = 0; t < row.ids.size(); ++t)
    if (row.documents[t] == document || is_trunk(row.documents[t]))
      tokens.push_back(text(row.ids[t], "@", row.positions[t], ">", row.targets[t]));
  return tokens;
}

TEST(PairRows, HoldACommonPromptOnce) {
  TemporaryFolder folder;
  const std::string lines = R"({"prompt": "Hello there World", "chosen": " no", "rejected": " World"}
{"prompt": "Hello", "chosen": " no Hello", "rejected": " no World"}
)";
  for (const PairTargets targets : {PairTargets::answers, PairTargets::chosen_prompts}) {
    const auto twice = rows_of(folder, lines, ExampleUse::pair, {targets, false});
    const auto once = rows_of(folder, lines, ExampleUse::pair, {targets, true});
    std::int64_t saved = 0;
    for (std::int64_t i = 0; i < 2; ++i) {
      const Row row = once->row(i), plain = twice->row(i);
      EXPECT_EQ(std::ssize(row.ids), once->length(i));
      EXPECT_EQ(once->trained_tokens(i), twice->trained_tokens(i));
      EXPECT_EQ(once->first_trained(i), twice->first_trained(i));
      EXPECT_EQ(sequence_of(row, 0), sequence_of(plain, 0));
      const std::vector<std::string> rejected = sequence_of(row, 1), apart = sequence_of(plain, 1);
      const auto trunk = std::size_t(std::ranges::count(row.documents, trunk_of(0)));
      EXPECT_GT(trunk, 0u);
      saved += std::int64_t(trunk);
      // The trunk's targets are those of the chosen sequence.
      EXPECT_EQ(std::vector(rejected.begin() + trunk, rejected.end()), std::vector(apart.begin() + trunk, apart.end()));
      for (std::size_t t = 0; t < trunk; ++t)
        EXPECT_TRUE(targets == PairTargets::chosen_prompts || row.targets[t] == ignored_target)
            << "an answer's token belongs to its own document";
    }
    EXPECT_THAT(once->describe(), HasSubstr(text("common prompts save ", saved, " tokens")));
    EXPECT_NE(hash_of(*once), hash_of(*twice));
  }
}

TEST(PreferencePair, JudgedAnswersAreSingleOrOfPairs) {
  const auto judged = [](const std::string& line) {
    std::string words;
    for (const JudgedAnswer& answer : parse_judged(line, "x:1"))
      words += answer.example.prompt + "|" + answer.example.text + words_of(answer.example) +
               (answer.is_desirable ? "+" : "-");
    return words;
  };
  EXPECT_EQ(judged(R"({"prompt": "a", "completion": " b", "label": true})"), "a| b+");
  EXPECT_EQ(judged(R"({"prompt": "a", "chosen": "b", "rejected": "c"})"), "a|b+a|c-");
  EXPECT_EQ(
      judged(
          R"({"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "g"}], "label": false})"),
      "|u:q a:g -");
  for (const char* line : {R"({"prompt": "a", "completion": "b"})", R"({"prompt": "a", "completion": "b", "label": 1})",
                           R"({"prompt": "a", "completion": [{"role": "user", "content": "q"}], "label": true})",
                           R"({"completion": "b", "label": true})"})
    EXPECT_THAT(message_of<InputError>([&] { parse_judged(line, "p.jsonl:3"); }), HasSubstr("p.jsonl:3")) << line;
}

TEST(JudgedRows, MismatchedOnesTakeTheAnswerBefore) {
  TemporaryFolder folder;
  std::string lines;
  for (const char* answer : {"one", "two and more", "three", "four"})
    lines += std::string(R"({"prompt": ")") + answer + R"( Hello", "completion": ")" + answer + R"(", "label": )" +
             (answer[0] == 'o' ? "true" : "false") + "}\n";
  const auto rows = rows_of(folder, lines, ExampleUse::judged);
  const auto answer = [](const Row& row) {
    std::vector<std::int64_t> ids;
    for (const std::int64_t id : row.targets)
      if (id != ignored_target) ids.push_back(id);
    return ids;
  };
  EXPECT_THAT(rows->row(0).named.at("desirable"), ElementsAre(1));
  EXPECT_THAT(rows->row(1).named.at("desirable"), ElementsAre(0));
  const auto& judged = dynamic_cast<const JudgedRows&>(*rows);
  for (const auto& [source, others] :
       {std::pair(judged.mismatched(4), std::array{3, 0, 1, 2}),
        std::pair(judged.mismatched(2), std::array{1, 0, 3, 2}),
        std::pair(judged.mismatched(3), std::array{3, 0, 1, 2})})  // the last row alone joins the ring
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(answer(source->row(i)), answer(rows->row(others[std::size_t(i)]))) << i;
      EXPECT_EQ(source->row(i).ids[1], rows->row(i).ids[1]) << "the prompt is its own";
      EXPECT_EQ(source->length(i), std::ssize(source->row(i).ids));
      EXPECT_EQ(source->trained_tokens(i), std::ssize(answer(source->row(i))));
    }
}

TEST(ReferenceRows, AddTheirValues) {
  Made made;
  auto rows = std::make_shared<ReferenceRows>(made.rows({}), 2);
  EXPECT_FALSE(rows->has_values(1));
  rows->set(std::vector<std::int64_t>{2, 0}, std::vector<float>{5, 6, 1, 2});
  EXPECT_TRUE(rows->has_values(2) && rows->has_values(0) && !rows->has_values(1));
  EXPECT_THAT(rows->row(0).named.at(rows->named_tensors().back()), ElementsAre(1, 2));
  rows->fill({1, 2, 3, 4, 5, 6});
  EXPECT_THAT(rows->row(1).named.at(rows->named_tensors().back()), ElementsAre(3, 4));
  const ChosenRows chosen(rows, {2, 1});
  EXPECT_EQ(chosen.size(), 2);
  EXPECT_EQ(chosen.row(0).ids, rows->row(2).ids);
  EXPECT_EQ(chosen.first_trained(0), rows->first_trained(2));
  const HeldOutRows held(rows, 1, HeldOutRows::Side::validation);
  EXPECT_EQ(held.first_trained(0), rows->first_trained(held.place(0)));
  EXPECT_NE(hash_of(*rows), hash_of(*made.rows({}, 2)));
  EXPECT_EQ(hash_of(*rows), hash_of(*made.rows({})));
}

}  // namespace preference_pair_test
}  // namespace zero

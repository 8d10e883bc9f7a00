#include "zero/data/examples/preference_pair.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/data/examples/example_keys.h"
#include "zero/data/examples/example_line.h"

namespace zero {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr const char* pairs_kind = "pairs of answers";
bool is_white(const Ordered& value) {
  return value.is_string() && value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") == std::string::npos;
}

/// True for an empty text, and for messages that say nothing and call no tool.
bool is_blank(const Ordered& answer) {
  if (!answer.is_array()) return is_white(answer);
  return std::ranges::all_of(answer, [](const Ordered& turn) {
    if (!turn.is_object() || turn.contains("tool_calls")) return false;
    const auto content = turn.find(turn.contains("content") ? "content" : "value");
    return content != turn.end() && is_white(*content);
  });
}

constexpr JsonLimits line_limits{.bytes = std::int64_t{1} << 30, .in_a_file = true};

/// Reads a line as the lines of parse_example() that its answers make.
class AnswerReader {
 public:
  AnswerReader(std::string_view line, const std::string& place)
      : line_(parsed_line(line, place, [&] { return parse_ordered_json(line, place, line_limits); })), place_(place) {
    if (!line_.is_object()) refuse("an example must be an object");
  }

  bool is_pair() const { return has("chosen") && has("rejected"); }
  bool is_judged() const { return has("completion") && has("label"); }

  void read_pair() {
    if (!is_pair()) refuse_kind({"chosen", "rejected"}, pairs_kind);
    chosen_ = answer("chosen"), rejected_ = answer("rejected");
    if (chosen_.is_string() != rejected_.is_string())
      refuse("\"chosen\" and \"rejected\" must both be texts, or both messages");
    if (are_equal()) return;
    chosen_.is_string() ? divide_texts() : divide_messages();
  }

  void read_judged() {
    if (!is_judged() || !has("prompt")) refuse_kind({"prompt", "completion", "label"}, "judged answers");
    if (!line_["label"].is_boolean()) refuse("\"label\" must be true or false");
    chosen_ = answer("completion"), prompt_ = line_["prompt"];
    if (chosen_.is_string() != prompt_.is_string() || (!prompt_.is_string() && !prompt_.is_array()))
      refuse("\"prompt\" and \"completion\" must both be texts, or both messages");
  }

  bool are_equal() const { return chosen_ == rejected_; }
  const Ordered& chosen_answer() const { return chosen_; }
  const Ordered& rejected_answer() const { return rejected_; }
  bool label() const { return line_["label"].get<bool>(); }
  Ordered chosen() const { return example_of(chosen_); }
  Ordered rejected() const { return example_of(rejected_); }

  void check(std::string_view line, std::set<std::string>* ignored) const {
    check_keys(parse_json(line, place_, line_limits),
               {"prompt", "chosen", "rejected", "completion", "label", "messages", "conversations", "system", "tools",
                "chat_template_kwargs"},
               place_, ignored);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw InputError(text(place_, ": ", why)); }

  /// Names the missing keys, and those that the example has.
  [[noreturn]] void refuse_kind(std::initializer_list<const char*> needed, const std::string& kind) const {
    std::string missing, found;
    for (const char* key : needed)
      if (!has(key)) missing += text(missing.empty() ? "" : ", ", '"', key, '"');
    for (const auto& [key, value] : line_.items())
      if (found.size() < 200) found += text(found.empty() ? "" : ", ", '"', key.substr(0, 40), '"');
    std::string remedy = "bring it into that form (docs/preferences.md), or leave [preference] out";
    if (kind == pairs_kind && is_judged())
      remedy = "its \"label\" makes a judged answer: set preference.method = \"kto\"";
    refuse(text("[preference] trains on ", kind, ", and this example lacks ", missing, "; it has ",
                found.empty() ? "no key" : found, ": ", remedy));
  }

  /// Other tools' keys for a prompt would be lost in silence.
  void refuse_other_prompts() const {
    for (const char* key : {"question", "instruction", "query", "input", "conversation"})
      if (has(key)) refuse(text("\"", key, "\" is not read: rename it to \"prompt\", or leave it out"));
  }

  bool has(const char* key) const {
    const auto found = line_.find(key);
    return found != line_.end() && !found->is_null();
  }

  /// A text or a list of messages. A single message counts as a list.
  Ordered answer(const char* key) const {
    const Ordered& value = line_.at(key);
    if (value.is_string() || (value.is_array() && !value.empty())) return value;
    if (value.is_object()) return Ordered::array({value});
    refuse(text("\"", key, "\" must be a text, a message or a list of messages"));
  }

  void divide_texts() {
    if (has("system")) refuse("\"system\" is for messages, and the answers are texts: make it a part of \"prompt\"");
    auto& a = chosen_.get_ref<std::string&>();
    auto& b = rejected_.get_ref<std::string&>();
    if (has("prompt")) {
      if (!line_["prompt"].is_string())
        refuse("\"prompt\" is a list of messages, and its answers are texts: make them messages too");
      prompt_ = line_["prompt"];
      const auto& prompt = prompt_.get_ref<const std::string&>();
      if (a.starts_with(prompt) && b.starts_with(prompt))  // the answers repeat it
        for (std::string* answer : {&a, &b}) answer->erase(0, prompt.size());
      return;
    }
    refuse_other_prompts();
    auto common = std::size_t(std::ranges::mismatch(a, b).in1 - a.begin());
    const bool is_start = common == std::min(a.size(), b.size());
    if (is_start && common > 0) --common;  // both answers keep a character
    const auto continues = [&](const std::string& answer) {
      return common < answer.size() && (answer[common] & 0xC0) == 0x80;
    };
    while (common > 0 && (continues(a) || continues(b))) --common;
    if (!is_start && common > 0 && a[common - 1] == ' ') --common;
    if (common == 0) refuse("the answers have no common beginning, and there is no \"prompt\": name the prompt");
    prompt_ = a.substr(0, common);
    for (std::string* answer : {&a, &b}) answer->erase(0, common);
  }

  /// The prompt's messages, and the answers behind them. Answers may repeat the prompt.
  void divide_messages() {
    const auto common = std::ranges::mismatch(chosen_, rejected_).in1 - chosen_.begin();
    if (common == std::ptrdiff_t(std::min(chosen_.size(), rejected_.size())))
      refuse("one of the answers is the start of the other one: leave the example out");
    if (has("prompt") && line_["prompt"].is_array()) return take_prompt(line_["prompt"], common);
    if (common > 0) {
      if (has("prompt")) require_among_shared(common);
      return take_prompt(Ordered(chosen_.begin(), chosen_.begin() + common), common);
    }
    for (const char* key : {"messages", "conversations"})
      if (has(key) && line_[key].is_array()) return take_prompt(line_[key], 0);
    if (!has("prompt")) {
      refuse_other_prompts();
      refuse("the answers share no message, and there is no \"prompt\": name the prompt");
    }
    prompt_ = Ordered::array({{{"role", "user"}, {"content", line_["prompt"]}}});
  }

  /// `common`: the number of messages with which both answers begin.
  void take_prompt(const Ordered& prompt, std::ptrdiff_t common) {
    prompt_ = prompt;
    const auto repeated = std::ptrdiff_t(prompt_.size());
    if (repeated == 0 || repeated > common || !std::equal(prompt_.begin(), prompt_.end(), chosen_.begin())) return;
    for (Ordered* side : {&chosen_, &rejected_}) side->erase(side->begin(), side->begin() + repeated);
  }

  /// A text prompt next to whole conversations is one of their messages.
  void require_among_shared(std::ptrdiff_t common) const {
    const bool is_there = std::any_of(chosen_.begin(), chosen_.begin() + common, [&](const Ordered& turn) {
      return turn.is_object() &&
             (turn.value("content", Ordered()) == line_["prompt"] || turn.value("value", Ordered()) == line_["prompt"]);
    });
    if (!is_there)
      refuse("\"prompt\" is none of the messages with which both answers begin: leave it out, or make them one");
  }

  Ordered example_of(const Ordered& answer) const {
    if (answer.is_string()) return {{"prompt", prompt_}, {"completion", answer}};
    Ordered turns = Ordered::array();
    for (const Ordered& turn : prompt_) turns.push_back(marked(turn, false));
    for (const Ordered& turn : answer) turns.push_back(marked(turn, true));
    const bool with_roles =
        std::ranges::all_of(turns, [](const Ordered& turn) { return !turn.is_object() || !turn.contains("from"); });
    Ordered made{{with_roles ? "messages" : "conversations", std::move(turns)}};
    for (const char* key : {"system", "tools", "chat_template_kwargs"})
      if (has(key)) made[key] = line_[key];
    return made;
  }

  /// The message with this training flag instead of its own. A user's message has none.
  static Ordered marked(Ordered turn, bool trained) {
    if (!turn.is_object()) return turn;
    for (const char* key : {"weight", "train", "training"}) turn.erase(key);
    const Ordered& role = turn.contains("role") ? turn["role"] : turn["from"];
    if (!trained && (role == "assistant" || role == "gpt")) turn["train"] = false;
    return turn;
  }

  Ordered line_, prompt_, chosen_, rejected_;
  const std::string& place_;
};

/// The number of first tokens that an example shares with its prompt alone.
std::ptrdiff_t prompt_tokens(const ConversationEncoder& encoder, const Example& example,
                             const EncodedExample& encoded) {
  if (example.kind != Example::Kind::completion) return std::ranges::find(encoded.trained, 1) - encoded.trained.begin();
  return std::ranges::mismatch(encoded.ids, encoder.encode_prompt(example)).in1 - encoded.ids.begin();
}

void train_from(EncodedExample& example, std::ptrdiff_t begin) {
  if (begin < std::ssize(example.trained))
    std::fill(example.trained.begin() + std::max<std::ptrdiff_t>(begin, 1), example.trained.end(), 1);
}

}  // namespace

PreferencePair parse_pair(std::string_view line, const std::string& place, std::set<std::string>* ignored) {
  AnswerReader reader(line, place);
  reader.read_pair();
  reader.check(line, ignored);
  PreferencePair pair;
  pair.are_equal = reader.are_equal();
  pair.chosen.place = place + " (chosen)";
  if (pair.are_equal) return pair;
  pair.chosen = parse_example(reader.chosen().dump(), pair.chosen.place, ignored);
  pair.rejected = parse_example(reader.rejected().dump(), place + " (rejected)", ignored);
  pair.chosen_is_blank = is_blank(reader.chosen_answer());
  pair.rejected_is_blank = is_blank(reader.rejected_answer());
  return pair;
}

std::vector<JudgedAnswer> parse_judged(std::string_view line, const std::string& place,
                                       std::set<std::string>* ignored) {
  AnswerReader reader(line, place);
  if (!reader.is_judged() && reader.is_pair()) {
    PreferencePair pair = parse_pair(line, place, ignored);
    if (pair.are_equal) return {};
    return {{std::move(pair.chosen), true, pair.chosen_is_blank},
            {std::move(pair.rejected), false, pair.rejected_is_blank}};
  }
  reader.read_judged();
  reader.check(line, ignored);
  return {{parse_example(reader.chosen().dump(), place, ignored), reader.label(), is_blank(reader.chosen_answer())}};
}

EncodedPair encode_pair(const ConversationEncoder& encoder, const PreferencePair& pair) {
  EncodedPair encoded;
  encoded.are_equal = pair.are_equal;
  encoded.chosen.place = pair.chosen.place;
  if (pair.are_equal) return encoded;
  encoded.chosen = encoder.encode(pair.chosen), encoded.rejected = encoder.encode(pair.rejected);
  encoded.chosen.is_blank = pair.chosen_is_blank, encoded.rejected.is_blank = pair.rejected_is_blank;
  const std::ptrdiff_t begin = std::min(prompt_tokens(encoder, pair.chosen, encoded.chosen),
                                        prompt_tokens(encoder, pair.rejected, encoded.rejected));
  train_from(encoded.chosen, begin);
  train_from(encoded.rejected, begin);
  return encoded;
}

EncodedExample encode_judged(const ConversationEncoder& encoder, const JudgedAnswer& answer) {
  EncodedExample encoded = encoder.encode(answer.example);
  encoded.is_blank = answer.is_blank;
  train_from(encoded, prompt_tokens(encoder, answer.example, encoded));
  return encoded;
}

}  // namespace zero

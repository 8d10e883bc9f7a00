#include "zero/data/examples/conversation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/data/examples/example_keys.h"
#include "zero/data/examples/example_line.h"

namespace zero {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr JsonLimits limits{.bytes = std::int64_t{1} << 30, .in_a_file = true};

constexpr const char* text_part = "{\"type\": \"text\", \"text\": ...}";

class Reader {
 public:
  Reader(const json& line, std::string_view source, const std::string& place, std::set<std::string>* ignored)
      : line_(line), source_(source), place_(place), ignored_(ignored) {}

  Example example() {
    if (has_content("messages")) return chat_of("messages");
    if (has_content("conversations") && has_roles(line_["conversations"])) return chat_of("conversations");
    if (has_content("conversations")) {
      check({"conversations", "system"});
      return chat(with_system(turns(
          "conversations", [this](const json& turn, std::size_t number) { return share_gpt_message(turn, number); })));
    }
    for (const bool saying : {true, false}) {  // joined tables may have an empty text where a row has no value
      if (offers({"prompt", "completion"}, saying)) return completion();
      if (offers({"instruction", "output"}, saying)) {
        check({"instruction", "input", "output", "system", "history"});
        return chat(alpaca());
      }
      if (offers({"text"}, saying)) return plain_text();
    }
    for (const char* key : {"messages", "conversations"})
      if (has(key)) refuse(text("\"", key, "\" is an empty conversation"));
    refuse_unknown_kind();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw InputError(text(place_, ": ", why)); }

  Example completion() const {
    check({"prompt", "completion"});
    if (has("label") && line_["label"].is_boolean())
      refuse(
          "\"label\" makes a judged answer: give [preference] method = \"kto\" (docs/preferences.md), or keep the liked "
          "ones, without the key");
    Example example;
    example.kind = Example::Kind::completion;
    example.prompt = string_of(line_, "prompt");
    example.text = string_of(line_, "completion");
    return example;
  }

  Example plain_text() const {
    check({"text"});
    Example example;
    example.kind = Example::Kind::text;
    example.text = string_of(line_, "text");
    return example;
  }

  /// Null, or an empty text, list or object.
  static bool is_empty(const json& value) {
    return value.is_null() || (value.is_string() ? value == "" : value.is_structured() && value.empty());
  }
  /// Returns true if the line has all keys. With `saying`, at least one value must not be empty.
  bool offers(std::initializer_list<const char*> keys, bool saying) const {
    const auto says_something = [&](const char* key) { return !is_empty(line_[key]); };
    return std::ranges::all_of(keys, [&](const char* key) { return has(key); }) &&
           (!saying || std::ranges::any_of(keys, says_something));
  }
  static bool says(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && !found->is_null();
  }
  /// A null counts as absent, since in joined tables a row has nulls in all columns that it lacks.
  bool has(const char* key) const { return says(line_, key); }
  bool has_content(const char* key) const { return has(key) && !is_empty(line_[key]); }
  /// True for "role" and "content" instead of "from" and "value".
  static bool has_roles(const json& turns) {
    const auto any_says = [&](const char* key) {
      return std::any_of(turns.begin(), turns.end(),
                         [&](const json& turn) { return turn.is_object() && says(turn, key); });
    };
    return turns.is_array() && any_says("role") && !any_says("from");
  }

  /// Messages with "role" and "content".
  Example chat_of(const char* list) {
    check({list, "system", "tools", "chat_template_kwargs"});
    Example example = chat(
        with_system(turns(list, [&](const json& turn, std::size_t number) { return message(turn, number, list); })));
    example.context = {held("tools", true), held("chat_template_kwargs", false)};
    return example;
  }

  [[noreturn]] void refuse_unknown_kind() const {
    if (has("chosen") && has("rejected"))
      refuse(
          "\"chosen\" and \"rejected\" make a pair of preferences, on which zero_train trains with [preference] "
          "(docs/preferences.md): give that section there, or keep the chosen answers alone, as \"messages\" or as "
          "\"prompt\" and \"completion\"");
    std::string keys;
    for (const auto& [key, value] : line_.items())
      if (!value.is_null()) keys += (keys.empty() ? "\"" : ", \"") + key.substr(0, 40) + "\"";
    std::string renamed;
    for (const auto& [asked, answered] : {std::pair("question", "answer"), std::pair("input", "output")})
      if (has(asked) && has(answered))
        renamed = text(": rename \"", asked, "\" to prompt and \"", answered, "\" to completion");
    refuse(text("no known kind of example: it has ", keys.empty() ? "no key" : keys.substr(0, 200),
                "; it must have messages, conversations, prompt and completion, instruction and output, or text",
                renamed));
  }

  // Checks the keys of the whole example.
  void check(std::vector<std::string_view> known) const {
    known.insert(known.end(), {"weight", "train", "training"});
    check_keys(line_, known, place_, ignored_);
    for (const char* key : {"weight", "train", "training"}) {
      if (!has(key)) continue;
      const bool as_others = std::string_view(key) == "weight" ? line_[key] == 1 : line_[key] == true;
      if (!as_others)
        refuse(text("\"", key, "\": ", line_[key].dump(),
                    " of a whole example is not honoured: say it in its messages, or leave the example out"));
    }
  }

  std::string string_of(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse(text("\"", key, "\" is missing"));
    const bool turns =
        found->is_array() && (std::string_view(key) == "prompt" || std::string_view(key) == "completion");
    if (!found->is_string())
      refuse(text("\"", key, "\" must be a text, not ", found->type_name(),
                  turns ? ": messages of prompt and completion stand in one list, \"messages\"" : ""));
    return found->get<std::string>();
  }

  static Example chat(std::vector<Message> messages) {
    Example example;
    example.kind = Example::Kind::chat;
    example.messages = std::move(messages);
    return example;
  }

  void check_turn(const json& turn, const std::string& place, std::vector<std::string_view> known,
                  const char* list) const {
    if (!turn.is_object()) refuse(text("a message must be an object with \"", known[0], "\" and \"", known[1], "\""));
    known.insert(known.end(), {"weight", "train", "training"});
    check_keys(turn, known, place, ignored_, text(list, "[]."));
  }

  Message message(const json& turn, std::size_t number, const char* list) {
    const std::string place = text(place_, ": message ", number);
    check_turn(turn, place,
               {"role", "content", "tool_calls", "tool_call_id", "reasoning_content", "thinking", "reasoning"}, list);
    const std::string role = role_of(string_of(turn, "role"), {}, "system, user, assistant, tool");
    const bool calls = has_calls(turn, place);
    Message made{role, content_of(turn, role, calls, place), trained_flag(turn, place)};
    if (is_more_than_text(turn)) made.whole = whole_message(list, number - 1);
    return made;
  }

  Message share_gpt_message(const json& turn, std::size_t number) const {
    static const std::map<std::string, std::string> other{{"human", "user"}, {"gpt", "assistant"}};
    const std::string place = text(place_, ": message ", number);
    check_turn(turn, place, {"from", "value"}, "conversations");
    const std::string role = role_of(string_of(turn, "from"), other, "system, human or user, gpt or assistant");
    const bool parts = turn.contains("value") && turn["value"].is_array();
    if (parts && turn["value"].size() != 1)
      throw InputError(text(place, ": \"value\" is a list; taken are a text, or a list of one part ", text_part));
    return {role, parts ? text_of_parts(turn["value"], "value", place) : string_of(turn, "value"),
            trained_flag(turn, place)};
  }

  static bool has_calls(const json& turn, const std::string& place) {
    const auto calls = turn.find("tool_calls");
    if (calls == turn.end() || calls->is_null() || *calls == "") return false;
    const bool objects = calls->is_array() &&
                         std::all_of(calls->begin(), calls->end(), [](const json& call) { return call.is_object(); });
    if (!objects) throw InputError(text(place, ": \"tool_calls\" must be a list of objects"));
    for (std::size_t i = 0; i < calls->size(); ++i) check_arguments((*calls)[i], text(place, ": call ", i + 1));
    return !calls->empty();
  }

  // The arguments are an object, or a value's JSON text as OpenAI writes it; an empty text counts as no arguments.
  static void check_arguments(const json& call, const std::string& place) {
    const auto function = call.find("function");
    const json& holder = function != call.end() && function->is_object() ? *function : call;
    const auto arguments = holder.find("arguments");
    if (arguments == holder.end() || !arguments->is_string() || *arguments == "") return;
    try {
      parse_json(arguments->get_ref<const std::string&>(), text(place, ": \"arguments\""), limits);
    } catch (const InputError& error) {
      throw InputError(
          text(error.what(), "; arguments are an object or JSON text: mend them, or leave the example out"));
    }
  }

  // Content is a text, parts of text, absent with calls, or an object if it is a tool's result.
  std::string content_of(const json& turn, const std::string& role, bool calls, const std::string& place) const {
    const auto found = turn.find("content");
    const bool none = found == turn.end() || found->is_null();
    if (none && role == "assistant" && calls) return "";
    if (none || found->is_string()) return string_of(turn, "content");
    if (found->is_object() && role == "tool") return found->dump();
    if (!found->is_array()) return string_of(turn, "content");
    return text_of_parts(*found, "content", place);
  }

  static std::string text_of_parts(const json& parts, const char* key, const std::string& place) {
    std::string all;
    for (const json& part : parts) {
      const bool is_text =
          part.is_object() && part.value("type", json()) == "text" && part.contains("text") && part["text"].is_string();
      if (!is_text)
        throw InputError(text(place, ": \"", key, "\" has a part that is not ", text_part, ": only text is trained"));
      all += part["text"].get_ref<const std::string&>();
    }
    if (parts.empty()) throw InputError(text(place, ": \"", key, "\" is an empty list"));
    return all;
  }

  static bool is_flag(const std::string& key) { return key == "weight" || key == "train" || key == "training"; }

  static bool is_more_than_text(const json& turn) {
    for (const auto& [key, value] : turn.items())
      if (!value.is_null() && !is_flag(key) && (key == "content" ? !value.is_string() : key != "role")) return true;
    return false;
  }

  // Drops nulls at any depth, except in the arguments of a call, which are data.
  static Ordered without_nulls(const Ordered& value) {
    if (!value.is_structured()) return value;
    Ordered kept = value.is_array() ? Ordered::array() : Ordered::object();
    for (const auto& [key, member] : value.items()) {
      if (value.is_array())
        kept.push_back(without_nulls(member));
      else if (!member.is_null())
        kept[key] = key == "arguments" ? member : without_nulls(member);
    }
    return kept;
  }

  // Returns the message with its keys in order, without nulls and training flags. Content that is an object is a tool's
  // result and stays unchanged.
  ChatJson whole_message(const char* list, std::size_t index) {
    if (ordered_.is_null()) ordered_ = parse_ordered_json(source_, place_, limits);
    Ordered shown = Ordered::object();
    for (const auto& [key, value] : ordered_[list][index].items())
      if (!value.is_null() && !is_flag(key))
        shown[key] = key == "content" && value.is_object() ? value : without_nulls(value);
    return std::make_shared<const Ordered>(std::move(shown));
  }

  // Reads a list of objects or one object, as JSON or as JSON text. Null and an empty text mean none.
  ChatJson held(const char* key, bool list) {
    if (!has(key) || line_[key] == "") return nullptr;
    if (ordered_.is_null()) ordered_ = parse_ordered_json(source_, place_, limits);
    Ordered value = ordered_[key];
    if (value.is_string())
      value = parse_ordered_json(value.get<std::string>(), text(place_, ": \"", key, "\""), limits);
    if (value.is_null()) return nullptr;
    const bool fits = list ? value.is_array() && std::all_of(value.begin(), value.end(),
                                                             [](const Ordered& one) { return one.is_object(); })
                           : value.is_object();
    if (!fits)
      refuse(text("\"", key, "\" must be ", list ? "a list of objects" : "an object", ", or the JSON text of ",
                  list ? "such a list" : "one"));
    return std::make_shared<const Ordered>(std::move(value));
  }

  std::string role_of(const std::string& name, const std::map<std::string, std::string>& other,
                      const char* known) const {
    for (const std::string_view role : {"system", "user", "assistant"})
      if (name == role) return name;
    if (other.empty() && name == "tool") return name;
    if (const auto found = other.find(name); found != other.end()) return found->second;
    static const std::map<std::string, std::string> meant{
        {"human", "user"},      {"customer", "user"},   {"gpt", "assistant"},     {"bot", "assistant"},
        {"model", "assistant"}, {"ai", "assistant"},    {"chatgpt", "assistant"}, {"developer", "system"},
        {"function", "tool"},   {"observation", "tool"}};
    const auto role = meant.find(name);
    refuse(text("unknown role \"", name.substr(0, 40), "\": roles are ", known,
                role == meant.end() ? "" : "; rename it, perhaps to \"" + role->second + "\""));
  }

  template <class Read>
  std::vector<Message> turns(const char* name, const Read& read) const {
    const json& list = line_[name];
    if (!list.is_array()) refuse(text("\"", name, "\" must be a list of messages"));
    std::vector<Message> messages;
    for (const json& turn : list) messages.push_back(read(turn, messages.size() + 1));
    return messages;
  }

  std::vector<Message> with_system(std::vector<Message> messages) const {
    if (!has_content("system")) return messages;
    const std::string system = string_of(line_, "system");
    if (messages.front().role == "system") refuse("has a system message and \"system\" as well");
    messages.insert(messages.begin(), {"system", system});
    return messages;
  }

  std::vector<Message> alpaca() const {
    std::vector<Message> messages = history();
    std::string instruction = string_of(line_, "instruction");
    if (has_content("input")) instruction += "\n" + string_of(line_, "input");
    messages.push_back({"user", std::move(instruction)});
    messages.push_back({"assistant", string_of(line_, "output")});
    return with_system(std::move(messages));
  }

  // Alpaca's earlier turns: a list of [question, answer].
  std::vector<Message> history() const {
    std::vector<Message> messages;
    if (!has_content("history")) return messages;
    if (!line_["history"].is_array()) refuse("\"history\" must be a list of pairs of texts");
    for (const json& pair : line_["history"]) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
        refuse("\"history\" must be a list of pairs of texts");
      messages.push_back({"user", pair[0].get<std::string>()});
      messages.push_back({"assistant", pair[1].get<std::string>()});
    }
    return messages;
  }

  const json& line_;
  std::string_view source_;
  Ordered ordered_;  // the line with its keys in order, parsed on demand
  const std::string& place_;
  std::set<std::string>* ignored_;
};

}  // namespace

Example parse_example(std::string_view line, const std::string& place, std::set<std::string>* ignored) {
  const json parsed = parsed_line(line, place, [&] { return parse_json(line, place, limits); });
  if (!parsed.is_object())
    throw InputError(text(place, ": an example must be a JSON object, not ", parsed.type_name()));
  Example example = Reader(parsed, line, place, ignored).example();
  example.place = place;
  return example;
}

}  // namespace zero

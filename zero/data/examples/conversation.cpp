#include "zero/data/examples/conversation.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/data/examples/example_keys.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr JsonLimits limits{.bytes = std::int64_t{1} << 30, .depth = 32, .in_a_file = true};

class Reader {
 public:
  Reader(const json& line, const std::string& place, std::set<std::string>* ignored)
      : line_(line), place_(place), ignored_(ignored) {}

  Example example() const {
    if (has("messages")) {
      check({"messages", "system"});
      return chat(with_system(turns("messages", "role", "content")));
    }
    if (has("conversations")) {
      check({"conversations", "system"});
      return chat(with_system(turns("conversations", "from", "value")));
    }
    if (has("prompt") && has("completion")) {
      check({"prompt", "completion"});
      if (has("label") && line_["label"].is_boolean())
        refuse(
            "\"label\": examples that were liked or not (KTO) are not trained; keep the liked ones, without the key");
      Example example;
      example.kind = Example::Kind::completion;
      example.prompt = string_of(line_, "prompt");
      example.text = string_of(line_, "completion");
      return example;
    }
    if (has("instruction") && has("output")) {
      check({"instruction", "input", "output", "system", "history"});
      return chat(alpaca());
    }
    if (has("text")) {
      check({"text"});
      Example example;
      example.kind = Example::Kind::text;
      example.text = string_of(line_, "text");
      return example;
    }
    refuse(
        "no known kind of example; its keys must be messages, conversations, prompt and completion, instruction and output, or text");
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw InputError(text(place_, ": ", why)); }

  bool has(const char* key) const { return line_.contains(key); }

  // Of the whole example.
  void check(std::vector<std::string_view> known) const {
    known.insert(known.end(), {"weight", "train", "training"});
    check_keys(line_, known, place_, ignored_);
    for (const char* key : {"weight", "train", "training"}) {
      if (!has(key) || line_[key].is_null()) continue;
      const bool as_others = std::string_view(key) == "weight" ? line_[key] == 1 : line_[key] == true;
      if (!as_others)
        refuse(text("\"", key, "\": ", line_[key].dump(),
                    " of a whole example is not honoured: say it in its messages, or leave the example out"));
    }
  }

  std::string string_of(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse(text("\"", key, "\" is missing"));
    if (!found->is_string()) refuse(text("\"", key, "\" must be a text, not ", found->type_name()));
    return found->get<std::string>();
  }

  static Example chat(std::vector<Message> messages) {
    Example example;
    example.kind = Example::Kind::chat;
    example.messages = std::move(messages);
    return example;
  }

  Message message(const json& turn, std::size_t number, const char* list, const char* role_key,
                  const char* content_key) const {
    if (!turn.is_object())
      refuse(text("a message must be an object with \"", role_key, "\" and \"", content_key, "\""));
    const std::string place = text(place_, ": message ", number);
    check_keys(turn, {role_key, content_key, "weight", "train", "training"}, place, ignored_, text(list, "[]."));
    const std::string role = string_of(turn, role_key);
    return {role_of(role, std::string_view(role_key) == "from"), content_of(turn, content_key, number),
            trained_flag(turn, place)};
  }

  // A text, or a list with one part that is a text.
  std::string content_of(const json& turn, const char* key, std::size_t number) const {
    const auto found = turn.find(key);
    if (found == turn.end() || !found->is_array()) return string_of(turn, key);
    const json part = found->size() == 1 && found->front().is_object() ? found->front() : json::object();
    if (part.value("type", json()) != "text" || !part.contains("text"))
      refuse(text(
          "message ", number, ": \"", key,
          "\" is a list; taken are a text, or a list of one part {\"type\": \"text\", \"text\": ...}: only text is trained"));
    return string_of(part, "text");
  }

  std::string role_of(const std::string& name, bool share_gpt) const {
    static constexpr std::array<std::array<std::string_view, 2>, 2> other = {{{"human", "user"}, {"gpt", "assistant"}}};
    for (const std::string_view role : {"system", "user", "assistant"})
      if (name == role) return name;
    if (share_gpt)
      for (const auto& [spelt, role] : other)
        if (name == spelt) return std::string(role);
    refuse(text("unknown role \"", name.substr(0, 40), "\": roles are ",
                share_gpt ? "system, human or user, gpt or assistant" : "system, user, assistant"));
  }

  std::vector<Message> turns(const char* name, const char* role_key, const char* content_key) const {
    const json& list = line_[name];
    if (!list.is_array()) refuse(text("\"", name, "\" must be a list of messages"));
    if (list.empty()) refuse(text("\"", name, "\" is an empty conversation"));
    std::vector<Message> messages;
    for (const json& turn : list) messages.push_back(message(turn, messages.size() + 1, name, role_key, content_key));
    return messages;
  }

  std::vector<Message> with_system(std::vector<Message> messages) const {
    if (!has("system") || line_["system"].is_null()) return messages;
    const std::string system = string_of(line_, "system");
    if (system.empty()) return messages;
    if (messages.front().role == "system") refuse("has a message of the system and \"system\" beside it");
    messages.insert(messages.begin(), {"system", system});
    return messages;
  }

  std::vector<Message> alpaca() const {
    std::vector<Message> messages = history();
    std::string instruction = string_of(line_, "instruction");
    if (has("input") && !line_["input"].is_null()) {
      const std::string input = string_of(line_, "input");
      if (!input.empty()) instruction += "\n" + input;
    }
    messages.push_back({"user", std::move(instruction)});
    messages.push_back({"assistant", string_of(line_, "output")});
    return with_system(std::move(messages));
  }

  // Alpaca's earlier turns: a list of [question, answer].
  std::vector<Message> history() const {
    std::vector<Message> messages;
    if (!has("history") || line_["history"].is_null()) return messages;
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
  const std::string& place_;
  std::set<std::string>* ignored_;
};

}  // namespace

Example parse_example(std::string_view line, const std::string& place, std::set<std::string>* ignored) {
  if (const std::size_t first = line.find_first_not_of(" \t\r\n"); first != line.npos && line[first] == '[')
    throw InputError(
        text(place,
             ": begins a list, and an example is a JSON object; a file that is one list of examples is called .json"));
  const json parsed = parse_json(line, place, limits);
  if (!parsed.is_object())
    throw InputError(text(place, ": an example must be a JSON object, not ", parsed.type_name()));
  Example example = Reader(parsed, place, ignored).example();
  example.place = place;
  return example;
}

}  // namespace zero

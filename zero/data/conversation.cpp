#include "zero/data/conversation.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/error.h"
#include "comm/log.h"
#include "models/file.h"
#include "models/json_text.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr JsonLimits limits{.bytes = std::int64_t{1} << 30, .depth = 32};

class Reader {
 public:
  Reader(const json& line, const std::string& place) : line_(line), place_(place) {}

  Example example() const {
    if (has("messages")) return chat(turns(line_["messages"], "messages", "role", "content"));
    if (has("conversations")) return chat(share_gpt());
    if (has("prompt") && has("completion")) {
      Example example;
      example.kind = Example::Kind::completion;
      example.prompt = string_of(line_, "prompt");
      example.text = string_of(line_, "completion");
      return example;
    }
    if (has("instruction") && has("output")) return chat(alpaca());
    if (has("text")) {
      Example example;
      example.kind = Example::Kind::text;
      example.text = string_of(line_, "text");
      return example;
    }
    refuse("no known kind of example; its keys must be messages, conversations, prompt and completion, instruction and output, or text");
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw InputError(text(place_, ": ", why)); }

  bool has(const char* key) const { return line_.contains(key); }

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

  Message message(const json& turn, const char* role_key, const char* content_key) const {
    if (!turn.is_object()) refuse(text("a message must be an object with \"", role_key, "\" and \"", content_key, "\""));
    const std::string role = string_of(turn, role_key);
    return {role_of(role, std::string_view(role_key) == "from"), string_of(turn, content_key)};
  }

  std::string role_of(const std::string& name, bool share_gpt) const {
    static constexpr std::array<std::array<std::string_view, 2>, 2> other = {{{"human", "user"}, {"gpt", "assistant"}}};
    for (const std::string_view role : {"system", "user", "assistant"})
      if (name == role) return name;
    if (share_gpt)
      for (const auto& [spelt, role] : other)
        if (name == spelt) return std::string(role);
    refuse(text("unknown role \"", name.substr(0, 40), "\": roles are ", share_gpt ? "system, human or user, gpt or assistant" : "system, user, assistant"));
  }

  std::vector<Message> turns(const json& list, const char* name, const char* role_key, const char* content_key) const {
    if (!list.is_array()) refuse(text("\"", name, "\" must be a list of messages"));
    if (list.empty()) refuse(text("\"", name, "\" is an empty conversation"));
    std::vector<Message> messages;
    for (const json& turn : list) messages.push_back(message(turn, role_key, content_key));
    return messages;
  }

  std::vector<Message> with_system(std::vector<Message> messages) const {
    if (!has("system") || line_["system"].is_null()) return messages;
    const std::string system = string_of(line_, "system");
    if (!system.empty()) messages.insert(messages.begin(), {"system", system});
    return messages;
  }

  std::vector<Message> share_gpt() const { return with_system(turns(line_["conversations"], "conversations", "from", "value")); }

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
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) refuse("\"history\" must be a list of pairs of texts");
      messages.push_back({"user", pair[0].get<std::string>()});
      messages.push_back({"assistant", pair[1].get<std::string>()});
    }
    return messages;
  }

  const json& line_;
  const std::string& place_;
};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace

Example parse_example(std::string_view line, const std::string& place) {
  const json parsed = parse_json(line, place, limits);
  if (!parsed.is_object()) throw InputError(text(place, ": a line must be a JSON object, not ", parsed.type_name()));
  Example example = Reader(parsed, place).example();
  example.place = place;
  return example;
}

void read_examples(const std::string& path, const std::function<bool(const Example&)>& take, std::int64_t max_line_bytes) {
  const File file = File::open(path);
  std::int64_t number = 0, found = 0;
  bool more = true;
  const auto end_line = [&](std::string_view line) {
    ++number;
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    if (is_blank(line)) return;
    ++found;
    more = take(parse_example(line, text(path, ":", number)));
  };
  std::string held;  // a line's beginning
  std::vector<char> block(1 << 20);
  for (std::int64_t offset = 0; offset < file.size() && more;) {
    const std::int64_t count = std::min<std::int64_t>(static_cast<std::int64_t>(block.size()), file.size() - offset);
    file.read_at(block.data(), count, offset);
    offset += count;
    std::string_view rest(block.data(), static_cast<std::size_t>(count));
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos && more; end = rest.find('\n')) {
      held.append(rest.substr(0, end));
      end_line(held);
      held.clear();
      rest.remove_prefix(end + 1);
    }
    held.append(rest);
    if (static_cast<std::int64_t>(held.size()) > max_line_bytes)
      throw InputError(text(path, ":", number + 1, ": the line is longer than ", max_line_bytes, " bytes; an example is one line"));
  }
  if (more) end_line(held);
  if (found == 0) throw InputError(text(path, ": holds no example"));
}

}  // namespace zero

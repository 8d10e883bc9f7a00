#include "models/text/conversation/shown_conversation.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/jinja/error.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 3> thoughts{"reasoning_content", "thinking", "reasoning"};

Json shown(const Message& message) {
  return message.whole ? *message.whole : Json{{"role", message.role}, {"content", message.content}};
}

/// Not null, false or empty.
bool says_something(const Json& value) {
  return !value.is_null() && value != false && value != "" && !(value.is_structured() && value.empty());
}

bool has(const Message& message, const char* key) {
  if (!message.whole) return false;
  const auto found = message.whole->find(key);
  return found != message.whole->end() && says_something(*found);
}

bool has_thoughts(const Message& message) {
  return std::any_of(thoughts.begin(), thoughts.end(), [&](const char* key) { return has(message, key); });
}

bool has_parts(const Message& message) {
  return message.whole && message.whole->contains("content") && message.whole->at("content").is_array();
}

/// The text of a conversation; nothing where the template refuses it or fails.
std::optional<std::string> text_of(const ConversationTemplate& chat, const Json& request) {
  try {
    return chat.render(request).text;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Whether parts give what their texts give. A template that refuses the question with texts too is not judged.
bool takes_parts(const ConversationTemplate& chat) {
  const auto rendered = [&](const Json& content) {
    return text_of(chat, {{"messages",
                           {{{"role", "user"}, {"content", content}}, {{"role", "assistant"}, {"content", content}}}}});
  };
  const auto of_texts = rendered("zero7part");
  return !of_texts || rendered({{{"type", "text"}, {"text", "zero7part"}}}) == of_texts;
}

/// The arguments of a message's calls that are texts of JSON objects.
std::vector<Json*> argument_texts(Json& message) {
  std::vector<Json*> found;
  if (!message.contains("tool_calls") || !message["tool_calls"].is_array()) return found;
  for (Json& call : message["tool_calls"]) {
    if (!call.is_object()) continue;
    Json& function = call.contains("function") && call["function"].is_object() ? call["function"] : call;
    if (const auto place = function.find("arguments"); place != function.end() && place->is_string())
      found.push_back(&*place);
  }
  return found;
}

/// The object of a JSON text; nothing where it is another value, or none.
std::optional<Json> object_of(const std::string& json) {
  try {
    Json value = parse_ordered_json(json, "arguments", {.in_a_file = true});
    return value.is_object() ? std::optional(std::move(value)) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// What a template may lose: its name for the user, whether the template speaks of it, and how it is taken out.
struct Burden {
  std::string name;
  bool spoken_of = false;
  std::function<void(Json& request)> take_out;
};

void take_out_keys(Json& request, const std::vector<const char*>& keys) {
  for (Json& message : request["messages"])
    for (const char* key : keys) message.erase(key);
}

std::vector<Burden> burdens_of(const ConversationTemplate& chat, const std::vector<Message>& messages,
                               const ChatContext& context) {
  std::vector<Burden> burdens;
  if (context.tools && says_something(*context.tools))
    burdens.push_back({"\"tools\"", chat.mentions("tools"), [](Json& request) { request["tools"] = nullptr; }});
  if (context.variables)
    for (const auto& [name, value] : context.variables->items())
      if (says_something(value))
        burdens.push_back({text("\"chat_template_kwargs\": \"", name, "\""), chat.mentions(name),
                           [name = name](Json& request) { request["variables"].erase(name); }});
  const auto first = [&](const auto& test) { return std::find_if(messages.begin(), messages.end(), test); };
  const auto add = [&](const auto& found, const char* name, bool spoken_of, std::function<void(Json&)> take_out) {
    if (found != messages.end())
      burdens.push_back({text("message ", found - messages.begin() + 1, ": ", name), spoken_of, std::move(take_out)});
  };
  add(first([](const Message& one) { return has(one, "tool_calls"); }), "\"tool_calls\"", chat.mentions("tool_calls"),
      [](Json& request) { take_out_keys(request, {"tool_calls"}); });
  add(first(has_thoughts), "the thoughts (reasoning_content, thinking)",
      std::any_of(thoughts.begin(), thoughts.end(), [&](const char* key) { return chat.mentions(key); }),
      [](Json& request) {
        take_out_keys(request, {thoughts.begin(), thoughts.end()});
      });
  add(first([](const Message& one) { return one.role == "tool"; }), "what the tool says", chat.has_string("tool"),
      [](Json& request) {
        Json others = Json::array();
        for (const Json& message : request["messages"])
          if (message["role"] != "tool") others.push_back(message);
        request["messages"] = std::move(others);
      });
  return burdens;
}

}  // namespace

Json shown_conversation(const std::vector<Message>& messages, std::size_t count, const ChatContext& context,
                        bool prompt) {
  Json request{{"messages", Json::array()}, {"add_generation_prompt", prompt}};
  for (std::size_t i = 0; i < count; ++i) request["messages"].push_back(shown(messages[i]));
  if (context.tools) request["tools"] = *context.tools;
  if (context.variables) request["variables"] = *context.variables;
  return request;
}

bool says_more_than_texts(const std::vector<Message>& messages, const ChatContext& context) {
  const auto given = [](const ChatJson& value) { return value && says_something(*value); };
  if (given(context.tools) || given(context.variables)) return true;
  return std::any_of(messages.begin(), messages.end(), [](const Message& message) {
    return message.role == "tool" || has(message, "tool_calls") || has_thoughts(message) ||
           (message.whole && !message.whole->value("content", Json()).is_string());
  });
}

std::vector<Message> with_parts_as_taken(const ConversationTemplate& chat, std::vector<Message> messages) {
  if (std::none_of(messages.begin(), messages.end(), has_parts) || takes_parts(chat)) return messages;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!has_parts(messages[i])) continue;
    const std::size_t parts = messages[i].whole->at("content").size();
    if (parts > 1)
      throw InputError(text("message ", i + 1, ": \"content\" has ", parts,
                            " parts, and the chat template writes texts only: join them into one text"));
    Json plain = *messages[i].whole;
    plain["content"] = messages[i].content;
    messages[i].whole = std::make_shared<const Json>(std::move(plain));
  }
  return messages;
}

std::vector<Message> with_arguments_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                             const ChatContext& context) {
  std::vector<Message> objects = messages;
  std::vector<std::string> quoted;  // the texts as JSON strings
  for (Message& message : objects) {
    if (!has(message, "tool_calls")) continue;
    Json whole = *message.whole;
    const std::size_t before = quoted.size();
    for (Json* arguments : argument_texts(whole))
      if (auto object = object_of(arguments->get_ref<const std::string&>())) {
        quoted.push_back(arguments->dump(-1, ' ', false, Json::error_handler_t::replace));
        *arguments = *std::move(object);
      }
    if (quoted.size() > before) message.whole = std::make_shared<const Json>(std::move(whole));
  }
  if (quoted.empty()) return messages;
  const auto rendered = [&](const std::vector<Message>& shown) {
    return text_of(chat, shown_conversation(shown, shown.size(), context, false));
  };
  const auto of_texts = rendered(messages);
  const auto is_quoted = [&](const std::string& one) { return of_texts->find(one) != std::string::npos; };
  if (of_texts && std::none_of(quoted.begin(), quoted.end(), is_quoted)) return messages;
  return rendered(objects) ? objects : messages;
}

void require_written(const ConversationTemplate& chat, const std::vector<Message>& messages,
                     const ChatContext& context) {
  for (const Burden& burden : burdens_of(chat, messages, context)) {
    if (burden.spoken_of) continue;
    Json request = shown_conversation(messages, messages.size(), context, false);
    const auto whole = text_of(chat, request);
    burden.take_out(request);
    if (!whole || request["messages"].empty() || text_of(chat, request) != whole) continue;
    throw InputError(text(burden.name,
                          " would be lost: the chat template reads nothing of that name; take it out of the data, or "
                          "name a template that writes it"));
  }
}

}  // namespace zero

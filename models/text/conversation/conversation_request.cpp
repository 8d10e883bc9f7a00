#include "models/text/conversation/conversation_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

Json shown(const Message& message) {
  return message.whole ? *message.whole : Json{{"role", message.role}, {"content", message.content}};
}

}  // namespace

Json conversation_request(const std::vector<Message>& messages, std::size_t count, const ChatContext& context,
                          bool prompt) {
  Json request{{"messages", Json::array()}, {"add_generation_prompt", prompt}};
  for (std::size_t i = 0; i < count; ++i) request["messages"].push_back(shown(messages[i]));
  if (context.tools) request["tools"] = *context.tools;
  if (context.variables) request["variables"] = *context.variables;
  return request;
}

const char* thought_key(const Json& message) {
  for (const char* key : thought_keys)
    if (const auto found = message.find(key); found != message.end() && !found->is_null()) return key;
  return nullptr;
}

std::optional<std::string> text_of(const ConversationTemplate& chat, const Json& request) {
  try {
    return chat.render(request).text;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool says_something(const Json& value) {
  return !value.is_null() && value != false && value != "" && !(value.is_structured() && value.empty());
}

Json& function_of(Json& call_or_tool) {
  const auto function = call_or_tool.find("function");
  return function != call_or_tool.end() && function->is_object() ? *function : call_or_tool;
}

std::vector<Json*> called_functions(Json& message) {
  std::vector<Json*> found;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return found;
  for (Json& call : *calls)
    if (call.is_object()) found.push_back(&function_of(call));
  return found;
}

std::optional<Json> object_of(const std::string& json) {
  try {
    Json value = parse_ordered_json(json, "arguments", {.in_a_file = true});
    return value.is_object() ? std::optional(std::move(value)) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace zero

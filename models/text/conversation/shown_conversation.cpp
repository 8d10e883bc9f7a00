#include "models/text/conversation/shown_conversation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "models/text/conversation/conversation_request.h"
#include "models/text/conversation/lost_text.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

bool has(const Message& message, const char* key) {
  if (!message.whole) return false;
  const auto found = message.whole->find(key);
  return found != message.whole->end() && says_something(*found);
}

bool has_thoughts(const Message& message) {
  return std::any_of(thought_keys.begin(), thought_keys.end(), [&](const char* key) { return has(message, key); });
}

bool has_parts(const Message& message) {
  return message.whole && message.whole->contains("content") && message.whole->at("content").is_array();
}

Message with_content(const Message& message, Json content) {
  Json whole = *message.whole;
  whole["content"] = std::move(content);
  Message changed = message;
  changed.whole = std::make_shared<const Json>(std::move(whole));
  return changed;
}

/// The request with each list of parts as one part, or as a text.
Json request_with(const std::vector<Message>& messages, const ChatContext& context, bool parts) {
  std::vector<Message> shown = messages;
  for (Message& message : shown)
    if (has_parts(message))
      message = with_content(
          message, parts ? Json::array({{{"type", "text"}, {"text", message.content}}}) : Json(message.content));
  return conversation_request(shown, shown.size(), context, false);
}

bool takes_parts(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context) {
  const Json as_texts = request_with(messages, context, false);
  const auto of_parts = text_of(chat, request_with(messages, context, true)), of_texts = text_of(chat, as_texts);
  if (!of_texts || of_parts == of_texts) return true;
  return of_parts && !writes_contents(chat, as_texts);
}

}  // namespace

bool says_more_than_texts(const std::vector<Message>& messages, const ChatContext& context) {
  const auto given = [](const ChatJson& value) { return value && says_something(*value); };
  if (given(context.tools) || given(context.variables)) return true;
  return std::any_of(messages.begin(), messages.end(), [](const Message& message) {
    return message.role == "tool" || has(message, "tool_calls") || has_thoughts(message) ||
           (message.whole && !message.whole->value("content", Json()).is_string());
  });
}

std::vector<Message> with_parts_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                         const ChatContext& context) {
  if (std::none_of(messages.begin(), messages.end(), has_parts) || takes_parts(chat, messages, context))
    return messages;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!has_parts(messages[i])) continue;
    const std::size_t parts = messages[i].whole->at("content").size();
    if (parts > 1)
      throw InputError(text("message ", i + 1, ": \"content\" has ", parts,
                            " parts, and the chat template writes texts only: join them into one text"));
    messages[i] = with_content(messages[i], messages[i].content);
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
    for (Json* function : called_functions(whole)) {
      const auto arguments = function->find("arguments");
      if (arguments == function->end() || !arguments->is_string()) continue;
      if (auto object = object_of(arguments->get_ref<const std::string&>())) {
        quoted.push_back(arguments->dump(-1, ' ', false, Json::error_handler_t::replace));
        *arguments = *std::move(object);
      }
    }
    if (quoted.size() > before) message.whole = std::make_shared<const Json>(std::move(whole));
  }
  if (quoted.empty()) return messages;
  const auto rendered = [&](const std::vector<Message>& shown) {
    return text_of(chat, conversation_request(shown, shown.size(), context, false));
  };
  const auto of_texts = rendered(messages);
  const auto is_quoted = [&](const std::string& one) { return of_texts->find(one) != std::string::npos; };
  if (of_texts && std::none_of(quoted.begin(), quoted.end(), is_quoted)) return messages;
  return rendered(objects) ? objects : messages;
}

}  // namespace zero

#include "models/text/conversation/conversation_template.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/value.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

/// A message as the template sees it.
Json shown_message(const Json& message) {
  static constexpr std::array<const char*, 3> names{"reasoning_content", "thinking", "reasoning"};
  if (!message.is_object()) throw InputError("\"messages\": a message must be an object");
  const Json* thought = nullptr;
  for (const char* name : names)
    if (const auto found = message.find(name); !thought && found != message.end() && !found->is_null())
      thought = &*found;
  Json result = Json::object();
  if (thought) result["thinking"] = *thought;
  for (const auto& [key, value] : message.items())
    if (!value.is_null()) result[key] = value;
  if (thought) result["reasoning_content"] = *thought;
  return result;
}

const Json& member(const Json& request, const char* key) {
  static const Json none;
  const auto found = request.find(key);
  return found == request.end() ? none : *found;
}

Json variables_of(const Json& request, const ConversationTemplate::Tokens& tokens) {
  const Json &messages = member(request, "messages"), &tools = member(request, "tools"),
             &more = member(request, "variables"), &prompt = member(request, "add_generation_prompt");
  if (!messages.is_array() || messages.empty()) throw InputError("\"messages\" must be a list of at least one message");
  if (!tools.is_null() && !tools.is_array()) throw InputError("\"tools\" must be a list, or null");
  if (!more.is_null() && !more.is_object()) throw InputError("\"variables\" must be an object, or null");
  if (!prompt.is_null() && !prompt.is_boolean()) throw InputError("\"add_generation_prompt\" must be true or false");
  Json variables = Json::object();
  for (const auto& [name, token] : tokens) variables[name] = token;
  for (const auto& [name, value] : more.items()) variables[name] = value;
  for (const char* own : {"messages", "tools", "add_generation_prompt"})
    if (more.contains(own))
      throw InputError(text("\"variables\": \"", own, "\" stands beside \"variables\", not in it"));
  variables["messages"] = Json::array();
  for (const Json& message : messages) variables["messages"].push_back(shown_message(message));
  variables["tools"] = tools;
  if (!variables.contains("documents")) variables["documents"] = nullptr;
  variables["add_generation_prompt"] = prompt.is_boolean() && prompt.get<bool>();
  return variables;
}

jinja::Template parsed(const FolderTemplates::Source& source) {
  try {
    return jinja::Template(source.jinja);
  } catch (const InputError& error) {
    throw InputError(text(source.place, ": the chat template cannot be read: ", error.what()));
  }
}

}  // namespace

ConversationTemplate::ConversationTemplate(const FolderTemplates::Source& source, Tokens tokens)
    : template_(parsed(source)), tokens_(std::move(tokens)) {}

ConversationText ConversationTemplate::render(const Json& request) const {
  return shown(template_.render(variables_of(request, tokens_)));
}

ConversationText ConversationTemplate::render(const std::vector<Message>& messages, std::size_t count,
                                              bool prompt) const {
  return shown(template_.render_with([&](jinja::Budget& budget) {
    const auto string = [&](const std::string& words) { return jinja::make_string(&budget, words); };
    std::vector<jinja::Value> list;
    for (std::size_t i = 0; i < count; ++i) {
      jinja::DictBuilder message(&budget);
      message.set(string("role"), string(messages[i].role));
      message.set(string("content"), string(messages[i].content));
      list.push_back(message.take());
    }
    jinja::DictBuilder variables(&budget);
    for (const auto& [name, token] : tokens_) variables.set(string(name), string(token));
    variables.set(string("messages"), jinja::make_list(&budget, std::move(list)));
    for (const char* none : {"tools", "documents"}) variables.set(string(none), jinja::Value::none());
    variables.set(string("add_generation_prompt"), jinja::Value::boolean(prompt));
    return variables.take();
  }));
}

ConversationText ConversationTemplate::shown(jinja::Rendered rendered) const {
  ConversationText result{std::move(rendered.text), std::nullopt, {}, rendered.generated_in_place};
  if (!template_.has_generation()) return result;
  result.generated = std::move(rendered.generated);
  result.generated_bytes = std::move(rendered.generated_bytes);
  return result;
}

std::string_view ConversationTemplate::token(std::string_view name) const {
  for (const auto& [known, token] : tokens_)
    if (known == name) return token;
  return {};
}

ConversationTemplates::ConversationTemplates(const std::string& folder, const std::string& choice)
    : folder_(folder), templates_(FolderTemplates::read(folder)) {
  if (!choice.empty()) templates_.by_name = {{"default", FolderTemplates::named(choice)}};
}

ConversationText ConversationTemplates::render(const Json& request) {
  const FolderTemplates::Source* source = templates_.chosen(!member(request, "tools").is_null());
  if (!source)
    throw InputError(text(
        folder_,
        " has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json): name a file by --template"));
  for (const auto& [from, chat] : read_)
    if (from == source) return chat.render(request);
  read_.emplace_back(source, ConversationTemplate(*source, templates_.tokens));
  return read_.back().second.render(request);
}

}  // namespace zero

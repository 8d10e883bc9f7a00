#pragma once
// The requests of ConversationTemplate::render, and their parts. No LibTorch.
#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// The keys of a message that may hold thoughts, in the order of precedence.
inline constexpr std::array<const char*, 3> thought_keys{"reasoning_content", "thinking", "reasoning"};

/// The key whose thoughts a template receives. nullptr if the message has none.
const char* thought_key(const nlohmann::ordered_json& message);

/// A request with the first `count` messages, the tools and the variables.
nlohmann::ordered_json conversation_request(const std::vector<Message>& messages, std::size_t count,
                                            const ChatContext& context, bool prompt);

/// The text of a request. Nothing if the template rejects it or fails.
std::optional<std::string> text_of(const ConversationTemplate& chat, const nlohmann::ordered_json& request);

/// True if a value is not null, false or empty.
bool says_something(const nlohmann::ordered_json& value);

/// The object with "name" and the rest of a call or a tool: its "function", or itself.
nlohmann::ordered_json& function_of(nlohmann::ordered_json& call_or_tool);

/// function_of() each of a message's "tool_calls".
std::vector<nlohmann::ordered_json*> called_functions(nlohmann::ordered_json& message);

/// The object of a JSON text; nothing if the text is another value, or no JSON.
std::optional<nlohmann::ordered_json> object_of(const std::string& json);

}  // namespace zero

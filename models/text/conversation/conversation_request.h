#pragma once
// The JSON requests for ConversationTemplate::render, and their parts. Does not include LibTorch.
#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// The keys of a message that may hold thoughts, in order of precedence.
inline constexpr std::array<const char*, 3> thought_keys{"reasoning_content", "thinking", "reasoning"};

/// The key whose thoughts a template receives. Returns nullptr if the message has none.
const char* thought_key(const nlohmann::ordered_json& message);

/// Makes a request with the first `count` messages, the tools and the variables.
nlohmann::ordered_json conversation_request(const std::vector<Message>& messages, std::size_t count,
                                            const ChatContext& context, bool prompt);

/// The rendered text of a request. Returns nothing if the template rejects it or fails.
std::optional<std::string> text_of(const ConversationTemplate& chat, const nlohmann::ordered_json& request);

/// True unless a value is null, false or empty.
bool says_something(const nlohmann::ordered_json& value);

/// The object that holds "name" and the other fields of a call or a tool: its "function" if there is one, otherwise
/// itself.
nlohmann::ordered_json& function_of(nlohmann::ordered_json& call_or_tool);

/// function_of() for each of a message's "tool_calls".
std::vector<nlohmann::ordered_json*> called_functions(nlohmann::ordered_json& message);

/// Parses a JSON object. Returns nothing if the text is another value, or not JSON.
std::optional<nlohmann::ordered_json> object_of(const std::string& json);

}  // namespace zero

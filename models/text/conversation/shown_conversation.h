#pragma once
// What a template is shown of a conversation, and what of that it would lose. No LibTorch.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// The request for ConversationTemplate::render: the first `count` messages, the tools and the variables.
nlohmann::ordered_json shown_conversation(const std::vector<Message>& messages, std::size_t count,
                                          const ChatContext& context, bool prompt);

/// Whether a conversation holds more than texts of system, user and assistant: tools, variables, calls, thoughts, parts.
bool says_more_than_texts(const std::vector<Message>& messages, const ChatContext& context);

/// The messages with parts as the template takes them: where it writes texts only, as a rendering of its own tells, a
/// message of one part becomes that part's text. InputError for one of several then.
std::vector<Message> with_parts_as_taken(const ConversationTemplate& chat, std::vector<Message> messages);

/// The messages with the arguments of calls that are JSON text as the template takes them: as they are, as transformers
/// shows them, or as objects, as servers do, where the template fails on the text or would quote it once more.
std::vector<Message> with_arguments_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                             const ChatContext& context);

/// InputError where tools, calls, thoughts, a tool's words or variables are there, the template names them nowhere, and
/// without them its text is the same: they would be lost in silence.
void require_written(const ConversationTemplate& chat, const std::vector<Message>& messages,
                     const ChatContext& context);

}  // namespace zero

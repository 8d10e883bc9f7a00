#pragma once
// Brings a conversation into the form that a template takes. No LibTorch.
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// True if a conversation holds more than texts of system, user and assistant: tools, variables, calls, thoughts,
/// parts.
bool says_more_than_texts(const std::vector<Message>& messages, const ChatContext& context);

/// The messages with parts in the form that the template takes. Both forms of this conversation are rendered: lists of
/// one part each, and texts. Parts stay if the two give one text, and if texts are rejected or lost. Otherwise a
/// message of one part becomes that part's text, and one of several parts throws InputError.
std::vector<Message> with_parts_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                         const ChatContext& context);

/// The messages with JSON-text arguments of calls in the form that the template takes. They stay as they are, as in
/// transformers. They become objects, as in servers, if the template fails on the text or would quote it again.
std::vector<Message> with_arguments_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                             const ChatContext& context);

}  // namespace zero

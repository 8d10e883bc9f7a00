#pragma once
// The form in which a template takes a conversation. No LibTorch.
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// Whether a conversation holds more than texts of system, user and assistant: tools, variables, calls, thoughts, parts.
bool says_more_than_texts(const std::vector<Message>& messages, const ChatContext& context);

/// The messages with parts as the template takes them. Both forms of this very conversation are rendered: lists of one part
/// each, and texts. Parts stay where the two give one text, and where texts are refused or lost; else a message of one
/// part becomes that part's text. InputError for one of several then.
std::vector<Message> with_parts_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                         const ChatContext& context);

/// The messages with the arguments of calls that are JSON text as the template takes them: as they are, as transformers
/// shows them, or as objects, as servers do, where the template fails on the text or would quote it once more.
std::vector<Message> with_arguments_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                             const ChatContext& context);

}  // namespace zero

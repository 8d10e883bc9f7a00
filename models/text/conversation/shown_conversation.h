#pragma once
// Converts a conversation to the form that a template accepts. Does not include LibTorch.
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// True if a conversation has more than plain texts of system, user and assistant: tools, variables, calls, thoughts or
/// parts.
bool says_more_than_texts(const std::vector<Message>& messages, const ChatContext& context);

/// Returns the messages with contents in a form that the template accepts. The conversation is rendered with each
/// content as a list of one part, and as a text. If both give the same text, or if texts are rejected or dropped, lists
/// of parts are kept. Otherwise a content of one part becomes that part's text, and a content of several parts throws
/// InputError.
std::vector<Message> with_parts_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                         const ChatContext& context);

/// Returns the messages with the arguments of calls in a form that the template accepts. Arguments given as JSON text
/// are kept, as in transformers. If the template fails on the text or would quote it again, they become objects, as
/// inference servers do.
std::vector<Message> with_arguments_as_taken(const ConversationTemplate& chat, std::vector<Message> messages,
                                             const ChatContext& context);

}  // namespace zero

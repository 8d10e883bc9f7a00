#pragma once
// Finds text of a conversation that a template loses: text whose marks (text_marks.h) are missing in the result. Case,
// white space and order do not matter. No LibTorch.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// True if the text of a request for ConversationTemplate::render holds a part of every message's "content". False if
/// the template rejects it.
bool writes_contents(const ConversationTemplate& chat, const nlohmann::ordered_json& request);

/// Throws InputError if the template loses text of a conversation:
/// - a content or a part of it, or thoughts;
/// - a call, its name or its arguments;
/// - the name, description or parameters of a tool; variables.
///
/// Templates omit earlier answers, above all their thoughts, on purpose. An answer counts as written if the template
/// writes it when nothing follows. With `prompt` the text asks for an answer, and earlier answers are not checked. A
/// conversation that the template rejects is not judged.
void require_written(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
                     bool prompt = false);

/// True if the text of the conversation changes with a key of its messages. True if the template rejects it.
bool reads_key(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
               const std::string& key);

}  // namespace zero

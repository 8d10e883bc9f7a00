#pragma once
// Finds text of a conversation that a template drops: text whose marks (text_marks.h) are missing in the result. Case,
// white space and order do not matter. Does not include LibTorch.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// True if the rendered text of a request contains some of every message's "content". False if the template rejects the
/// request.
bool writes_contents(const ConversationTemplate& chat, const nlohmann::ordered_json& request);

/// Throws InputError if the template drops any of these:
/// - all or part of a content, or thoughts;
/// - a call, its name or its arguments;
/// - the name, description or parameters of a tool, or variables.
///
/// Templates omit earlier answers, and above all their thoughts, on purpose. An answer therefore counts as written if
/// the template writes it when nothing follows the answer. If `prompt` is set, answers are not checked. If the template
/// rejects the conversation, nothing is checked.
void require_written(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
                     bool prompt = false);

/// True if the rendered text depends on a key of the messages, or if the template rejects the conversation.
bool reads_key(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
               const std::string& key);

}  // namespace zero

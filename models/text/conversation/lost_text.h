#pragma once
// What a template loses of a conversation: that whose marks (text_marks.h) its text lacks, whatever the template does to
// case, white space or order. No LibTorch.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// Whether the text of a request for ConversationTemplate::render holds something of every message's "content". False
/// where the template refuses it.
bool writes_contents(const ConversationTemplate& chat, const nlohmann::ordered_json& request);

/// InputError where the template loses what a conversation says: a content or a part of it, thoughts, calls, tools and
/// their descriptions, variables. What an assistant said in earlier turns, its thoughts above all, may be left out on
/// purpose: it counts as written where the template writes it when nothing follows. With `prompt` the text is one that
/// asks for an answer, and earlier answers are not looked at. A conversation that the template refuses is not judged.
void require_written(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
                     bool prompt = false);

/// Whether the text of the conversation changes with a key of its messages. True where the template refuses it.
bool reads_key(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
               const std::string& key);

}  // namespace zero

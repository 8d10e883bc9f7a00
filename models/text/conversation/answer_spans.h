#pragma once
// Renders conversations with a model's own template and locates the assistant's text. The spans come from the
// template's generation blocks. If it has none, the conversation is rendered up to the end of each answer, and up to
// the prompt before it. Does not include LibTorch.
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// Throws InputError if the template rejects the conversation. Also throws if answers cannot be located, because the
/// rendering of the first messages is not a prefix of the whole text.
RenderedChat render_answers(const ConversationTemplate& chat, const std::vector<Message>& messages,
                            const ChatContext& context = {});

/// Renders the conversation followed by the prompt for the next answer. Throws InputError if the template rejects the
/// conversation.
std::string render_prompt(const ConversationTemplate& chat, const std::vector<Message>& messages,
                          const ChatContext& context = {});

/// The text that the template writes after an answer, without white space. It is one special token if template and
/// tokenizer match. Returns `eos` if the template writes nothing there, or rejects a question with its answer.
std::string end_of_answer(const ConversationTemplate& chat, const std::string& eos);

}  // namespace zero

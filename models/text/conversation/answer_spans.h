#pragma once
// Renders conversations with a model's own template and locates the assistant's text. The spans come from the
// template's generation blocks. Without any, the conversation is rendered up to each answer and up to the prompt before
// it. No LibTorch.
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// Throws InputError if the template rejects the conversation, or if the answers cannot be located. The rendering of
/// the first messages is then not the beginning of the whole.
RenderedChat render_answers(const ConversationTemplate& chat, const std::vector<Message>& messages,
                            const ChatContext& context = {});

/// The text with the prompt for the next answer. Throws InputError if the template rejects the conversation.
std::string render_prompt(const ConversationTemplate& chat, const std::vector<Message>& messages,
                          const ChatContext& context = {});

/// The text that the template writes after an answer, without white space: one special token in a template that matches
/// its tokenizer. `eos` if it writes nothing there, or rejects a question with its answer.
std::string end_of_answer(const ConversationTemplate& chat, const std::string& eos);

}  // namespace zero

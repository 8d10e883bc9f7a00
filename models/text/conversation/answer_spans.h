#pragma once
// Conversations through a model's own template, with the spans that the assistant wrote: those of the template's
// generation blocks, else found by rendering the conversation up to each answer and up to the prompt before it. No
// LibTorch.
#include <string>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/conversation_template.h"

namespace zero {

/// InputError when the template refuses the conversation, and when the answers cannot be told from the rest: what
/// the template makes of the first messages is then not how it begins the whole.
RenderedChat render_answers(const ConversationTemplate& chat, const std::vector<Message>& messages,
                            const ChatContext& context = {});

/// The text with the prompt for the next answer. InputError when the template refuses the conversation.
std::string render_prompt(const ConversationTemplate& chat, const std::vector<Message>& messages,
                          const ChatContext& context = {});

/// What the template writes behind an answer, up to white space: the text of one special token in a template that fits
/// its tokenizer. `eos` where it writes nothing there, or refuses a question with its answer.
std::string end_of_answer(const ConversationTemplate& chat, const std::string& eos);

}  // namespace zero

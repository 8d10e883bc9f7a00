#pragma once
// ChatHistory: a running conversation, and the prompt for the model's next answer. When the context is full it drops
// the oldest turns, never the system message. Does not include LibTorch.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"

namespace zero {

/// The id of the token that ends an answer. Throws InputError if the template's end of turn is not a special token of
/// the tokenizer.
std::int32_t end_of_turn_of(const ChatTemplate& chat_template, const ChatTokenizer& tokenizer);

class ChatHistory {
 public:
  /// `context` is the model's context length in tokens, of which `answer` tokens are reserved for the next answer. An
  /// empty `system` means no system message. Keeps references to its arguments. Also throws the errors of
  /// end_of_turn_of().
  ChatHistory(const ChatTemplate& chat_template, const ChatTokenizer& tokenizer, std::int64_t context,
              std::int64_t answer);

  void set_system(const std::string& content);
  /// Sets tools and variables for the template.
  void set_context(ChatContext context) { beside_ = std::move(context); }

  /// Adds a message from the user, or from a tool (`role`), and returns the prompt's ids, like transformers'
  /// apply_chat_template with add_generation_prompt. Drops older turns until the prompt fits. If the message alone does
  /// not fit, or the template rejects it, throws InputError and drops the message.
  std::vector<std::int32_t> ask(const std::string& content, const std::string& role = "user");

  /// Adds the answer to the last question.
  void answer(const std::string& content);

  std::int32_t end_of_turn() const { return end_of_turn_; }
  const std::vector<Message>& messages() const { return messages_; }
  std::int64_t dropped() const { return dropped_; }  // messages dropped so far

 private:
  std::size_t first_turn() const { return !messages_.empty() && messages_.front().role == "system" ? 1 : 0; }
  void drop_oldest_turn();
  std::vector<std::int32_t> prompt_that_fits();

  const ChatTemplate& template_;
  const ChatTokenizer& tokenizer_;
  std::int64_t context_, answer_;
  std::int32_t end_of_turn_;
  ChatContext beside_;
  std::vector<Message> messages_;
  std::int64_t dropped_ = 0;
};

}  // namespace zero

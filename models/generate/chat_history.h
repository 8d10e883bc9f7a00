#pragma once
// ChatHistory: a running conversation, and the prompt for the model's next answer. When the context is full it drops
// the oldest turns, never the system message. No LibTorch.
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
  /// `context`: the model's context in tokens. `answer`: tokens of it that are reserved for the next answer. An empty
  /// `system` means no system message. Keeps references. Throws what end_of_turn_of() throws.
  ChatHistory(const ChatTemplate& chat_template, const ChatTokenizer& tokenizer, std::int64_t context,
              std::int64_t answer);

  void set_system(const std::string& content);
  /// Sets tools and variables for the template.
  void set_context(ChatContext context) { beside_ = std::move(context); }

  /// Adds a message of the user, or of a tool (`role`), and returns the ids of the prompt, as transformers'
  /// apply_chat_template with add_generation_prompt. Drops older turns until it fits. Throws InputError if the message
  /// alone does not fit, and then forgets it. Also throws if the template rejects it.
  std::vector<std::int32_t> ask(const std::string& content, const std::string& role = "user");

  /// Adds the answer to the last question.
  void answer(const std::string& content);

  std::int32_t end_of_turn() const { return end_of_turn_; }
  const std::vector<Message>& messages() const { return messages_; }
  std::int64_t dropped() const { return dropped_; }  // messages so far

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

#include "models/generate/chat_history.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {

std::int32_t end_of_turn_of(const ChatTemplate& chat_template, const ChatTokenizer& tokenizer) {
  if (const auto mark = tokenizer.special(chat_template.end_of_turn())) return *mark;
  throw InputError(text("the chat template ", chat_template.said(), " ends answers with ", chat_template.end_of_turn(),
                        ", which is no special token of the tokenizer: template and tokenizer do not fit"));
}

ChatHistory::ChatHistory(const ChatTemplate& chat_template, const ChatTokenizer& tokenizer, std::int64_t context,
                         std::int64_t answer)
    : template_(chat_template),
      tokenizer_(tokenizer),
      context_(context),
      answer_(answer),
      end_of_turn_(end_of_turn_of(chat_template, tokenizer)) {}

void ChatHistory::set_system(const std::string& content) {
  messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(first_turn()));
  messages_.insert(messages_.begin(), {"system", content});
}

/// A turn is a question and its answer.
void ChatHistory::drop_oldest_turn() {
  const auto begin = messages_.begin() + static_cast<std::ptrdiff_t>(first_turn());
  auto end = begin + 1;
  while (end != messages_.end() && end->role != "user") ++end;
  dropped_ += end - begin;
  messages_.erase(begin, end);
}

std::vector<std::int32_t> ChatHistory::ask(const std::string& content, const std::string& role) {
  const std::vector<Message> before = messages_;
  const std::int64_t dropped_before = dropped_;
  messages_.push_back({role, content});
  try {
    return prompt_that_fits();
  } catch (const InputError&) {
    messages_ = before;
    dropped_ = dropped_before;
    throw;
  }
}

std::vector<std::int32_t> ChatHistory::prompt_that_fits() {
  for (;;) {
    std::vector<std::int32_t> ids = tokenizer_.encode(template_.prompt(messages_, beside_)).ids;
    if (static_cast<std::int64_t>(ids.size()) + answer_ <= context_) return ids;
    const auto first = messages_.begin() + static_cast<std::ptrdiff_t>(first_turn());
    const bool has_earlier = std::any_of(first + 1, messages_.end(), [](const Message& m) { return m.role == "user"; });
    if (!has_earlier)
      throw InputError(text("the message makes a prompt of ", ids.size(), " tokens; with ", answer_,
                            " for the answer it does not fit into the context of ", context_, ": shorten it"));
    drop_oldest_turn();
  }
}

void ChatHistory::answer(const std::string& content) {
  ZERO_CHECK(!messages_.empty() && messages_.back().role != "assistant", "an answer without a question");
  messages_.push_back({"assistant", content});
}

}  // namespace zero

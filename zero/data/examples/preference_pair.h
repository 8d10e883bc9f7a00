#pragma once
// PreferencePair: an example for preference training, a chosen and a rejected answer to one prompt. No LibTorch.
//   {"prompt": text, "chosen": text, "rejected": text}               no template; EOS ends both answers
//   {"prompt": [messages], "chosen": [messages], "rejected": [messages]}
//   {"chosen": ..., "rejected": ...}       texts or whole conversations; the prompt is what both begin with
//   {"conversations" or "messages": [messages], "chosen": message, "rejected": message}
// Messages have "role" and "content", or "from" and "value". Conversations may have "system", "tools" and
// "chat_template_kwargs", as in zero/data/examples/conversation.h.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zero/data/examples/conversation_encoder.h"

namespace zero {

struct PreferencePair {
  Example chosen, rejected;                                 // chat or completion
  bool are_equal = false;                                   // both answers are the same; only chosen.place is set then
  bool chosen_is_blank = false, rejected_is_blank = false;  // an answer is empty or white space
};

/// An answer that was judged by itself, for KTO:
///   {"prompt": text or [messages], "completion": text or [messages], "label": true or false}
struct JudgedAnswer {
  Example example;
  bool is_desirable = false;
  bool is_blank = false;  // the answer is empty or white space
};

/// Parses one line. The prompt of a line without one is found by TRL's rule (extract_prompt): the messages, or the
/// characters, that both answers begin with. A space at a text's end belongs to the answers. If one text begins with
/// the other, their last common character does too; conversations of that kind are refused, unless they are equal.
/// Throws InputError that begins with `place` for any other kind of example, and as parse_example() does. Unknown keys
/// are added to `ignored`.
PreferencePair parse_pair(std::string_view line, const std::string& place, std::set<std::string>* ignored = nullptr);

/// Parses one line as judged answers. A pair is two: a desirable one and another. A pair of equal answers is none.
/// Throws InputError as parse_pair() does.
std::vector<JudgedAnswer> parse_judged(std::string_view line, const std::string& place,
                                       std::set<std::string>* ignored = nullptr);

struct EncodedPair {
  EncodedExample chosen, rejected;
  bool are_equal = false;  // only chosen.place is set then
};

/// Encodes both sequences. As in TRL, every token after the prompt is trained, including those that the chat template
/// writes after an answer. The prompt of texts ends with the last token that both sequences share with it. Throws
/// InputError as ConversationEncoder::encode() does. Thread-safe.
EncodedPair encode_pair(const ConversationEncoder& encoder, const PreferencePair& pair);
/// Encodes one answer by the same rule.
EncodedExample encode_judged(const ConversationEncoder& encoder, const JudgedAnswer& answer);

}  // namespace zero

#pragma once
// A chat in a terminal or through a pipe: one line in, one answer out, as it comes.
#include <functional>
#include <iosfwd>
#include <string>

#include "models/generate/chat_history.h"
#include "models/generate/generator.h"
#include "models/text/tokenizer.h"

namespace zero {

struct ChatEnds {
  std::istream& in;                               // a message a line; ends at its end or at the line /exit
  std::function<void(const std::string&)> print;  // chunks of answers; a newline behind each answer
  bool sign = false;                              // print "> " when it is the user's turn
};

/// Answers line by line; what was said before is in the context, as far as it fits. Every answer draws by the next
/// seed. A line "/tool TEXT" is what a tool says. A message that is too long for the context, or that the template does not
/// allow, is warned about and forgotten; bytes that are no UTF-8 become U+FFFD.
void chat_loop(Generator& generator, ChatHistory& history, const Tokenizer& tokenizer, GenerateOptions options,
               const ChatEnds& ends);

/// Answers one message, and prints the answer with a newline behind it. InputError when the message is too long for the
/// context, or the template does not allow it.
void answer_once(Generator& generator, ChatHistory& history, const Tokenizer& tokenizer, GenerateOptions options,
                 const std::string& message, const std::function<void(const std::string&)>& print);

}  // namespace zero

#pragma once
// A chat in a terminal or through a pipe: reads one line, and streams one answer.
#include <functional>
#include <iosfwd>
#include <string>

#include "models/generate/chat_history.h"
#include "models/generate/generator.h"
#include "models/text/tokenizer.h"

namespace zero {

struct ChatEnds {
  std::istream& in;                               // one message per line; ends at end of file or at the line /exit
  std::function<void(const std::string&)> print;  // gets chunks of answers, and a newline after each answer
  bool sign = false;                              // print the prompt "> " when it is the user's turn
};

/// Answers line by line, with as much of the conversation in context as fits. Each answer uses the next seed. A line
/// "/tool TEXT" is a tool's result. Drops a message, with a warning, if it is too long for the context or if the
/// template does not allow it. Invalid UTF-8 becomes U+FFFD.
void chat_loop(Generator& generator, ChatHistory& history, const Tokenizer& tokenizer, GenerateOptions options,
               const ChatEnds& ends);

/// Answers one message, and prints the answer and a newline. Throws InputError if the message is too long for the
/// context, or if the template does not allow it.
void answer_once(Generator& generator, ChatHistory& history, const Tokenizer& tokenizer, GenerateOptions options,
                 const std::string& message, const std::function<void(const std::string&)>& print);

}  // namespace zero

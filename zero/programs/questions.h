#pragma once
// Questions: asks for missing answers on a terminal.
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace zero {

/// An answer that a flag or a question gives.
struct Question {
  std::string flag;     // "--model"
  std::string words;    // the question, without a question mark
  std::string usual;    // the answer to an empty line; empty: there is none
  std::string* answer;  // not empty: already given
  // Throws InputError for an answer that cannot be used. The question is then asked again.
  std::function<void(const std::string& answer)> check = {};
  // Decides, once the questions before it have answers, whether it is asked at all; none: always. `when` says the same
  // in words, as in "for texts".
  std::function<bool()> is_needed = {};
  std::string when = {};
};

/// Asks every question without an answer, in order. If `on_terminal` is false, takes usual answers, and throws
/// InputError that names the flags of all questions that have none. Throws InputError if the input ends.
/// A typed answer may begin with "~/", the home directory.
void ask(const std::vector<Question>& questions, bool on_terminal, std::istream& in, std::ostream& out);

}  // namespace zero

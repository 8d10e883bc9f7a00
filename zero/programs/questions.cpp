#include "zero/programs/questions.h"

#include <cstdlib>
#include <istream>
#include <ostream>

#include "base/error.h"

namespace zero {
namespace {

std::string trimmed(const std::string& words) {
  const std::size_t begin = words.find_first_not_of(" \t\r"), end = words.find_last_not_of(" \t\r");
  return begin == words.npos ? "" : words.substr(begin, end - begin + 1);
}

/// A shell would replace "~/" in a word of a command line; nothing does so in an answer.
std::string with_home(const std::string& answer) {
  const char* home = std::getenv("HOME");
  return home && answer.starts_with("~/") ? home + answer.substr(1) : answer;
}

/// Returns true if the answer can be used.
bool accept(const Question& question, const std::string& answer, std::ostream& out) {
  if (answer.empty()) return false;
  try {
    if (question.check) question.check(answer);
    *question.answer = answer;
    return true;
  } catch (const InputError& error) {
    out << "  " << error.what() << '\n';
    return false;
  }
}

void ask_one(const Question& question, std::istream& in, std::ostream& out) {
  for (std::string line;;) {
    out << question.words << (question.usual.empty() ? "" : " [" + question.usual + "]") << ": " << std::flush;
    if (!std::getline(in, line))
      throw InputError(question.flag + ": has no answer, because the input ended; give it on the command line");
    line = with_home(trimmed(line));
    if (accept(question, line.empty() ? question.usual : line, out)) return;
    if (line.empty()) out << "  there is no default: type an answer, or end with Ctrl-C\n";
  }
}

void require_answers(const std::vector<Question>& questions) {
  std::string missing, perhaps;
  for (const Question& question : questions) {
    std::string& answer = *question.answer;
    if (answer.empty()) answer = question.usual;
    if (!answer.empty()) continue;
    if (!question.is_needed || question.is_needed())
      missing += (missing.empty() ? "" : ", ") + question.flag;
    else
      perhaps += " (and " + question.flag + " " + question.when + ")";
  }
  if (!missing.empty())
    throw InputError("standard input is no terminal, so nothing can be asked: give " + missing + perhaps +
                     " on the command line");
}

}  // namespace

void ask(const std::vector<Question>& questions, bool on_terminal, std::istream& in, std::ostream& out) {
  if (!on_terminal) require_answers(questions);
  for (const Question& question : questions) {
    if (question.is_needed && !question.is_needed()) continue;
    if (question.answer->empty())
      ask_one(question, in, out);
    else if (question.check)
      question.check(*question.answer);
  }
}

}  // namespace zero

#include "zero/programs/chat_loop.h"

#include <algorithm>
#include <istream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::string_view tool_sign = "/tool ";

/// Reads the next line that is not blank; false at end of file.
bool next_message(const ChatEnds& ends, std::string& line) {
  for (;;) {
    if (ends.sign) ends.print("> ");
    if (!std::getline(ends.in, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    if (line == "/exit") return false;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const auto replace = nlohmann::json::error_handler_t::replace;
    line = nlohmann::json::parse(nlohmann::json(line).dump(-1, ' ', false, replace)).get<std::string>();
    return true;
  }
}

/// Generates one answer, without the token that ends it.
std::string say(Generator& generator, const Generator::Ids& prompt, const GenerateOptions& options,
                const Tokenizer& tokenizer, const std::function<void(const std::string&)>& print) {
  TextStream stream(tokenizer, tokenizer.beside_merges() != nullptr);  // an answer may then begin a new text
  std::string answer;
  const auto add = [&](const std::string& more) {
    print(more);
    answer += more;
  };
  generator.generate({prompt}, options, [&](std::int64_t, std::int32_t id) {
    const bool stop = std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end();
    if (!stop) add(stream.next(id));
  });
  add(stream.finish());
  print("\n");
  return answer;
}

}  // namespace

void chat_loop(Generator& generator, ChatHistory& history, const Tokenizer& tokenizer, GenerateOptions options,
               const ChatEnds& ends) {
  options.stop_ids.push_back(history.end_of_turn());
  std::int64_t dropped = 0;
  for (std::string line; next_message(ends, line);) {
    Generator::Ids prompt;
    try {
      const bool tool = line.starts_with(tool_sign);
      prompt = tool ? history.ask(line.substr(tool_sign.size()), "tool") : history.ask(line);
    } catch (const InputError& refused) {
      log_warning(refused.what());
      continue;
    }
    if (history.dropped() > dropped)
      log_info("note: the context is full; ", history.dropped() - dropped, " of the oldest messages were dropped");
    dropped = history.dropped();
    history.answer(say(generator, prompt, options, tokenizer, ends.print));
    ++options.sampling.seed;
  }
}

void answer_once(Generator& generator, ChatHistory& history, const Tokenizer& tokenizer, GenerateOptions options,
                 const std::string& message, const std::function<void(const std::string&)>& print) {
  options.stop_ids.push_back(history.end_of_turn());
  say(generator, history.ask(message), options, tokenizer, print);
}

}  // namespace zero

#include "zero/data/examples/prompts.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/utf8.h"
#include "zero/data/examples/conversation.h"

namespace zero {
namespace {

Prompt chat_prompt(const std::string& line, const std::string& place, const ChatTemplate& chat_template,
                   const Prompter& prompter) {
  Example example = parse_example(line, place);
  if (example.kind != Example::Kind::chat)
    throw InputError(text(
        place, ": is no conversation, and a .jsonl file of prompts has one a line; for plain texts name a .txt file"));
  Prompt prompt;
  const bool answered = example.messages.back().role == "assistant";
  const std::string reference = answered ? example.messages.back().content : "";
  if (answered) example.messages.pop_back();
  if (example.messages.empty()) throw InputError(text(place, ": holds an answer, and nothing that it answers"));
  for (const Message& message : example.messages)
    prompt.shown["messages"].push_back(
        message.whole ? *message.whole : nlohmann::ordered_json{{"role", message.role}, {"content", message.content}});
  if (example.context.tools) prompt.shown["tools"] = *example.context.tools;
  if (example.context.variables) prompt.shown["chat_template_kwargs"] = *example.context.variables;
  if (answered) prompt.shown["reference"] = reference;
  try {
    prompt.ids = prompter.chat().encode(chat_template.prompt(example.messages, example.context)).ids;
  } catch (const InputError& error) {
    throw InputError(text(place, ": ", error.what()));
  }
  return prompt;
}

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t\v\f\r") == line.npos; }

Prompt prompt_of(const std::string& content, const std::string& place, const Prompter& prompter) {
  Prompt prompt{{{"prompt", content}}, prompter.encode(content)};
  if (prompt.ids.empty()) throw InputError(text(place, ": gives no token, and a prompt must have at least one"));
  return prompt;
}

}  // namespace

std::vector<std::int32_t> Prompter::encode(const std::string& prompt) const {
  std::vector<std::int32_t> ids = chat_.encode(prompt).ids;
  const std::vector<std::int32_t>& opening = tokenizer_.opening();
  const bool written = ids.size() >= opening.size() && std::equal(opening.begin(), opening.end(), ids.begin());
  if (!written) ids.insert(ids.begin(), opening.begin(), opening.end());
  return ids;
}

std::vector<std::string> read_prompts(const std::string& path) {
  std::vector<std::string> lines;
  std::string whole = read_text_file(path);
  require_utf8(whole, path);
  if (whole.starts_with(byte_order_mark)) whole.erase(0, byte_order_mark.size());
  std::istringstream content(std::move(whole));
  for (std::string line; std::getline(content, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  while (!lines.empty() && is_blank(lines.back())) lines.pop_back();
  const auto blank = std::find_if(lines.begin(), lines.end(), is_blank);
  if (blank != lines.end())
    throw InputError(
        text(path, ":", blank - lines.begin() + 1, ": is blank, and each line is a prompt: take the line out"));
  if (lines.empty()) throw InputError(text(path, ": holds no prompt"));
  return lines;
}

Prompt text_prompt(const std::string& prompt, const std::string& place, const Prompter& prompter) {
  require_utf8(prompt, place);
  return prompt_of(prompt, place, prompter);
}

std::vector<Prompt> text_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const Prompter& prompter) {
  std::vector<Prompt> prompts;
  for (const std::string& line : lines)
    prompts.push_back(prompt_of(line, text(path, ":", prompts.size() + 1), prompter));
  return prompts;
}

bool holds_chats(const std::string& path) { return path.ends_with(".jsonl"); }

std::vector<Prompt> chat_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const ChatTemplate& chat_template, const Prompter& prompter) {
  std::vector<Prompt> prompts;
  for (const std::string& line : lines)
    prompts.push_back(chat_prompt(line, text(path, ":", prompts.size() + 1), chat_template, prompter));
  return prompts;
}

nlohmann::ordered_json continued(const Prompt& prompt, const std::vector<std::int32_t>& made,
                                 const Tokenizer& tokenizer, const std::vector<std::int64_t>& stop_ids) {
  const bool chat = prompt.shown.contains("messages");  // a chat's text excludes the token that ends an answer
  TextStream stream(tokenizer, false);
  std::string content;
  for (const std::int32_t id : made)
    if (!chat || std::find(stop_ids.begin(), stop_ids.end(), id) == stop_ids.end()) content += stream.next(id);
  nlohmann::ordered_json line = prompt.shown;
  line["text"] = content + stream.finish();
  line["ids"] = made;
  return line;
}

}  // namespace zero

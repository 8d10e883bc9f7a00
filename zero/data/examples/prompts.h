#pragma once
// Prompts: texts and conversations that a model continues, as token ids.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"

namespace zero {

/// The tokenizer of a model, and the ids that begin a text.
class Prompter {
 public:
  /// `settings`: the folder with tokenizer_config.json. Throws InputError if that file is broken. The tokenizer must
  /// outlive the object.
  Prompter(const Tokenizer& tokenizer, const std::string& settings)
      : tokenizer_(tokenizer), chat_(tokenizer, settings) {}

  /// Encodes a text, with a document's opening ids first unless the text contains them.
  std::vector<std::int32_t> encode(const std::string& prompt) const;
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ChatTokenizer& chat() const { return chat_; }

 private:
  const Tokenizer& tokenizer_;
  ChatTokenizer chat_;
};

struct Prompt {
  nlohmann::ordered_json shown;  // {"prompt": text}, or {"messages": [...]} with the answer as "reference"
  std::vector<std::int32_t> ids;
};

/// Returns a prompt. Errors call it `place`. Throws InputError if the prompt has no tokens or is not UTF-8.
Prompt text_prompt(const std::string& prompt, const std::string& place, const Prompter& prompter);

/// Returns the lines of a file of prompts, without blank ones at its end. Throws InputError for an empty file, and with
/// the line number for a blank line before others.
std::vector<std::string> read_prompts(const std::string& path);

/// Returns one prompt per line of `path`. Throws InputError, with the line number, for a prompt without tokens.
std::vector<Prompt> text_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const Prompter& prompter);

/// True if a file of prompts holds conversations: its name ends in .jsonl.
bool holds_chats(const std::string& path);

/// Returns one conversation per line, in the training format, rendered by the chat template. The model answers the last
/// message. If the last message is already an answer, it is the reference. Throws InputError, with the line number, for
/// anything else.
std::vector<Prompt> chat_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const ChatTemplate& chat_template, const Prompter& prompter);

/// Returns the prompt with its continuation as "text" and the new ids as "ids". The text of an answer omits `stop_ids`.
nlohmann::ordered_json continued(const Prompt& prompt, const std::vector<std::int32_t>& made,
                                 const Tokenizer& tokenizer, const std::vector<std::int64_t>& stop_ids);

}  // namespace zero

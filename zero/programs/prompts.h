#pragma once
// Prompts: the texts and conversations that zero_generate continues, as token ids.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"
#include "zero/programs/model_source.h"

namespace zero {

/// The tokenizer of a model, and the ids that begin a text.
class Prompter {
 public:
  /// `named`: the value of --tokenizer; empty: the tokenizer of the adapter or the model. Throws InputError if there is
  /// none.
  Prompter(const ModelSource& source, const std::string& named);

  /// Encodes a text, with a document's opening ids first unless the text contains them.
  std::vector<std::int32_t> encode(const std::string& prompt) const;
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ChatTokenizer& chat() const { return chat_; }

 private:
  Tokenizer tokenizer_;
  ChatTokenizer chat_;
};

struct Prompt {
  nlohmann::ordered_json shown;  // {"prompt": text}, or {"messages": [...]} with the answer as "reference"
  std::vector<std::int32_t> ids;
};

/// Returns the prompt of --prompt. Throws InputError if it has no tokens.
Prompt text_prompt(const std::string& prompt, const Prompter& prompter);

/// Returns the lines of a --prompts file. Throws InputError for an empty file, and with the line number for a blank
/// line.
std::vector<std::string> read_prompts(const std::string& path);

/// Returns one prompt per line of `path`. Throws InputError, with the line number, for a prompt without tokens.
std::vector<Prompt> text_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const Prompter& prompter);

/// True if a --prompts file holds conversations: its name ends in .jsonl.
bool holds_chats(const std::string& path);

/// Returns one conversation per line, in the training format, rendered by the chat template. The model answers the last
/// message. If the last message is already an answer, it is the reference. Throws InputError, with the line number, for
/// anything else.
std::vector<Prompt> chat_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const ChatTemplate& chat_template, const Prompter& prompter);

/// Returns the template of --chat-template, otherwise that of the adapter or the model.
ChatTemplate chat_template_of(const ModelSource& source);

}  // namespace zero

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
  /// `named` is the tokenizer of --tokenizer; empty: the adapter's or the model's. InputError where there is none.
  Prompter(const ModelSource& source, const std::string& named);

  /// A text with the ids in front that a document begins with, unless the text writes them out.
  std::vector<std::int32_t> encode(const std::string& prompt) const;
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ChatTokenizer& chat() const { return chat_; }

 private:
  Tokenizer tokenizer_;
  ChatTokenizer chat_;
};

struct Prompt {
  nlohmann::ordered_json shown;  // {"prompt": text}, or {"messages": [...]} with the "reference" that followed them
  std::vector<std::int32_t> ids;
};

/// --prompt. InputError where it gives no token.
Prompt text_prompt(const std::string& prompt, const Prompter& prompter);

/// The lines of a file of --prompts. InputError, with the line, for a blank one, and for a file without a line.
std::vector<std::string> read_prompts(const std::string& path);

/// A prompt a line of `path`. InputError, with the line, for one that gives no token.
std::vector<Prompt> text_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const Prompter& prompter);

/// Whether a file of --prompts holds conversations: its name ends in .jsonl.
bool holds_chats(const std::string& path);

/// A conversation a line, as training reads them, written by the chat template. The model answers the last message;
/// where that is an answer itself, it is shown as the reference. InputError, with the line, for anything else.
std::vector<Prompt> chat_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const ChatTemplate& chat_template, const Prompter& prompter);

/// The template of --chat-template, else the adapter's or the model's own.
ChatTemplate chat_template_of(const ModelSource& source);

}  // namespace zero

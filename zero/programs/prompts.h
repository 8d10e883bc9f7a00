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
  /// `named`: the value of --tokenizer; empty: the adapter's or the model's. InputError if there is none.
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
  nlohmann::ordered_json shown;  // {"prompt": text}, or {"messages": [...]} with the "reference" that followed them
  std::vector<std::int32_t> ids;
};

/// The prompt of --prompt. InputError if it gives no token.
Prompt text_prompt(const std::string& prompt, const Prompter& prompter);

/// The lines of a --prompts file. InputError, with the line number, for a blank line; also for an empty file.
std::vector<std::string> read_prompts(const std::string& path);

/// One prompt per line of `path`. InputError, with the line number, for one that gives no token.
std::vector<Prompt> text_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const Prompter& prompter);

/// True if a --prompts file holds conversations: its name ends in .jsonl.
bool holds_chats(const std::string& path);

/// One conversation per line, in the training format, rendered by the chat template. The model answers the last
/// message; a last message that is an answer is the reference. InputError, with the line number, for anything else.
std::vector<Prompt> chat_prompts(const std::vector<std::string>& lines, const std::string& path,
                                 const ChatTemplate& chat_template, const Prompter& prompter);

/// The template of --chat-template, else that of the adapter or the model.
ChatTemplate chat_template_of(const ModelSource& source);

}  // namespace zero

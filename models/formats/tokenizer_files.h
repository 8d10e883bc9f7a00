#pragma once
// TokenizerSource: where a model's tokenizer lies and how it is used. A model's folder contains the tokenizer used in
// training, so that zero_generate, transformers and llama.cpp produce the same ids and chats as in training. Does not
// include LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zero {

struct TokenizerSource {
  std::string tokenizer = {};      // a path for Tokenizer::load; empty if there is none
  std::string settings = {};       // the folder with tokenizer_config.json and the chat template
  std::string chat_template = {};  // a known template or a file; if empty, the template of `settings`
};

/// The names of a model directory's tokenizer files.
const std::vector<std::string>& tokenizer_file_names();

/// Finds the tokenizer of a model with an adapter: the named one, otherwise the adapter's, otherwise the model's.
/// Settings come from the first of the three folders that has any. Each argument may be empty.
TokenizerSource find_tokenizer(const std::string& named, const std::string& adapter, const std::string& model);

/// The folder of a tokenizer that is given as a folder or as a file.
std::string tokenizer_home(const std::string& tokenizer);

/// Returns the source's tokenizer_config.json as JSON text. It has all fields of the settings' file, the tokenizer's
/// added tokens and the chat template in effect. It also has facts that transformers needs but no file states. Throws
/// InputError for malformed files.
std::string tokenizer_config_of(const TokenizerSource& source);

/// Returns everything in the settings that affects the ids of a text or a chat, as JSON text. Two sources encode
/// identically if these texts, tokenizer.model and tokenizer.json are equal.
std::string encoding_rules_of(const TokenizerSource& source);

/// Returns the chat template in effect, or nothing if there is none. If that is the folder's own template,
/// tools_template_of() returns the folder's separate template for conversations with tools, if any.
std::optional<std::string> chat_template_of(const TokenizerSource& source);
std::optional<std::string> tools_template_of(const TokenizerSource& source);

/// Returns, as JSON text, everything except the messages on which a rendered conversation depends. That is the
/// templates, with and without tools, and the special tokens that they see.
std::string chat_templates_mark(const TokenizerSource& source);

/// The token that ends an answer in the chat template in effect. Returns nothing if the template is not a known one, or
/// if the text that ends an answer is not a special token.
std::optional<std::int64_t> end_of_turn_of(const TokenizerSource& source);

/// Throws InputError if write_tokenizer_files() could not write the source.
void check_tokenizer_files(const TokenizerSource& source);

/// Writes the tokenizer files into a folder and removes its other files of these names. If Tokenizer::load uses a
/// tokenizer.json, the files are copied unchanged except for the chat template in effect.
void write_tokenizer_files(const std::string& folder, const TokenizerSource& source);

}  // namespace zero

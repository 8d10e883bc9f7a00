#pragma once
// TokenizerSource: the place and the use of a model's tokenizer. A model's folder holds the tokenizer of its training,
// so that zero_generate, transformers and llama.cpp give the ids and the chats of the training. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zero {

struct TokenizerSource {
  std::string tokenizer = {};      // as Tokenizer::load takes it; empty: none
  std::string settings = {};       // folder of tokenizer_config.json and the chat template
  std::string chat_template = {};  // a known template or a file; empty: that of `settings`, if any
};

/// The names of a model directory's tokenizer files.
const std::vector<std::string>& tokenizer_file_names();

/// The tokenizer of a model with an adapter: the named one, else the adapter's, else the model's. Settings come from
/// the first of the three folders that has any. Each may be empty.
TokenizerSource find_tokenizer(const std::string& named, const std::string& adapter, const std::string& model);

/// The folder of a tokenizer as TokenizerSource and Tokenizer::load name it: the folder itself, or the file's folder.
std::string tokenizer_home(const std::string& tokenizer);

/// The tokenizer_config.json of the source, as JSON text. It has all fields of the settings' own, the tokenizer's added
/// tokens, and the chat template in effect. It also has facts that transformers needs and no file states. Throws
/// InputError for malformed files.
std::string tokenizer_config_of(const TokenizerSource& source);

/// The parts of the source that shape the ids of a text or a chat, as JSON text. Two sources with equal results and
/// equal tokenizer.model and tokenizer.json encode alike.
std::string encoding_rules_of(const TokenizerSource& source);

/// The chat template in effect, known or not; nothing if there is none. The second function returns the folder's other
/// template for conversations with tools, if the folder's own is in effect.
std::optional<std::string> chat_template_of(const TokenizerSource& source);
std::optional<std::string> tools_template_of(const TokenizerSource& source);

/// Everything that a rendered conversation depends on except its own words, as JSON text. That is the templates, for
/// conversations with tools and without, and the special tokens that they see.
std::string chat_templates_mark(const TokenizerSource& source);

/// The token that ends an answer of the chat template in effect. Nothing without a known template, or if its mark is
/// not a special token.
std::optional<std::int64_t> end_of_turn_of(const TokenizerSource& source);

/// Throws InputError if write_tokenizer_files() could not write the source.
void check_tokenizer_files(const TokenizerSource& source);

/// Writes the tokenizer files into a folder and removes its other files of these names. If a tokenizer.json counts
/// (Tokenizer::load), the files are copied unchanged, with the chat template in effect.
void write_tokenizer_files(const std::string& folder, const TokenizerSource& source);

}  // namespace zero

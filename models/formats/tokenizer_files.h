#pragma once
// TokenizerSource: where the tokenizer of a model lies and how it is used. What a model was trained with is what its
// folder carries, so that zero_generate, transformers and llama.cpp give the ids and the chats of the training. No
// LibTorch.
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

/// The tokenizer files that a model directory may hold, by name.
const std::vector<std::string>& tokenizer_file_names();

/// The tokenizer of a model with an adapter: the one named, else the adapter's where it has one, else the model's. Settings are those of the first of the three folders that has any. Each may be empty.
TokenizerSource find_tokenizer(const std::string& named, const std::string& adapter, const std::string& model);

/// The folder of a tokenizer as TokenizerSource and Tokenizer::load name it: the folder itself, or the file's.
std::string tokenizer_home(const std::string& tokenizer);

/// The tokenizer_config.json that goes with the source, as JSON text: the settings' own with every field that it has,
/// the tokenizer's added tokens, the chat template in effect, and what transformers must know where no file says it.
/// InputError for files that break their form.
std::string tokenizer_config_of(const TokenizerSource& source);

/// What of the source shapes the ids of a text or a chat, as JSON text: two sources with the same one and the same
/// tokenizer.model and tokenizer.json encode alike.
std::string encoding_rules_of(const TokenizerSource& source);

/// The chat template in effect, known or not; none where there is none. And the folder's other one for conversations
/// with tools, where nothing goes before the folder's.
std::optional<std::string> chat_template_of(const TokenizerSource& source);
std::optional<std::string> tools_template_of(const TokenizerSource& source);

/// All that a rendered conversation hangs on beside its own words, as JSON text: the templates, for conversations with
/// tools and without, and the special tokens that they see.
std::string chat_templates_mark(const TokenizerSource& source);

/// The token that ends an answer of the chat template in effect; none where there is no template that is known here, or
/// where its mark is no special token.
std::optional<std::int64_t> end_of_turn_of(const TokenizerSource& source);

/// InputError for what write_tokenizer_files() could not make of the source.
void check_tokenizer_files(const TokenizerSource& source);

/// Writes the tokenizer files into a folder and removes others of their names that lie there. Where a tokenizer.json
/// counts (Tokenizer::load) they are copied as they are, with the chat template in effect.
void write_tokenizer_files(const std::string& folder, const TokenizerSource& source);

}  // namespace zero

#pragma once
// Added tokens: the tokens that a tokenizer's folder adds to its model. They are recognised when a text spells them
// out. Does not include LibTorch.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zero {

struct AddedToken {
  std::int64_t id = -1;
  std::string content;
  bool special = false;      // marks structure; not shown in generated text
  bool lstrip = false;       // consumes the white space before it
  bool rstrip = false;       // consumes the white space after it
  bool single_word = false;  // matches only if no word character is next to it
  bool normalized = false;   // matched after the other tokens, in the remaining text
};

struct TokenizerFolder {
  std::vector<AddedToken> tokens;       // with ids, in ascending order
  std::vector<AddedToken> named;        // without ids: eos_token, pad_token and the like; all special
  std::optional<std::string> bos, eos;  // bos_token, eos_token; empty: none; not set: the folder does not say
};

/// Reads a folder as transformers does: added_tokens_decoder in tokenizer_config.json or, if that is missing,
/// added_tokens.json, special_tokens_map.json and the list in tokenizer.json. Throws InputError with the file and what
/// is wrong.
TokenizerFolder read_tokenizer_folder(const std::filesystem::path& folder);

}  // namespace zero

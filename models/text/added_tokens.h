#pragma once
// Added tokens: the tokens that a tokenizer's folder adds to its model, and that are found in a text as they are
// written. No LibTorch.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zero {

struct AddedToken {
  std::int64_t id = -1;
  std::string content;
  bool special = false;      // structure of a text: generated text does not show it
  bool lstrip = false;       // consumes the white space before it
  bool rstrip = false;       // consumes the white space after it
  bool single_word = false;  // only if no word continues next to it
  bool normalized = false;   // matched after the others, in the rest of the text
};

struct TokenizerFolder {
  std::vector<AddedToken> tokens;       // with ids, ascending
  std::vector<AddedToken> named;        // without: eos_token, pad_token and the like; all special
  std::optional<std::string> bos, eos;  // bos_token, eos_token; empty: there is none; nothing: the folder does not say
};

/// Reads a folder as transformers does: added_tokens_decoder of tokenizer_config.json; if that is missing,
/// added_tokens.json, special_tokens_map.json and the list of tokenizer.json. Throws InputError with the file and the
/// fault.
TokenizerFolder read_tokenizer_folder(const std::filesystem::path& folder);

}  // namespace zero

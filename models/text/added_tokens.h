#pragma once
// Added tokens: what a tokenizer's folder says beside its model about tokens that are found in a text as they are
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
  bool special = false;      // part of the form of a text: generated text does not show it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool single_word = false;  // only where no word goes on beside it
  bool normalized = false;   // looked for after the others, in what they leave
};

struct TokenizerFolder {
  std::vector<AddedToken> tokens;       // with ids, ascending
  std::vector<AddedToken> named;        // without: eos_token, pad_token and the like; all special
  std::optional<std::string> bos, eos;  // bos_token, eos_token; empty: there is none; nothing: the folder does not say
};

/// Reads as transformers does: added_tokens_decoder of tokenizer_config.json; where that is missing added_tokens.json,
/// special_tokens_map.json and the list of tokenizer.json. InputError names the file and what is broken in it.
TokenizerFolder read_tokenizer_folder(const std::filesystem::path& folder);

}  // namespace zero

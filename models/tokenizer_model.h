#pragma once
// What a tokenizer.model (a protobuf ModelProto of SentencePiece) says beside its pieces, read without SentencePiece:
// its C++ interface does not tell. Every length is checked against what remains of the file.
#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

struct TokenizerModelInfo {
  int model_type = 1;                     // trainer_spec: 1 unigram, 2 BPE, 3 word, 4 char
  bool whitespace_as_suffix = false;
  std::string_view character_map;         // normalizer_spec; empty: the identity
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

/// Throws InputError naming `path` when the bytes are no such message. The view in the result points into `content`.
TokenizerModelInfo parse_tokenizer_model(std::string_view content, const std::string& path);

/// The same model but that encoding puts no space in front of the text.
std::string without_dummy_prefix(std::string content);

}  // namespace zero

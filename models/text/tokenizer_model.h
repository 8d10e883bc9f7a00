#pragma once
// What a tokenizer.model (a protobuf ModelProto of SentencePiece) says beside its pieces, read without SentencePiece:
// its C++ interface does not tell. Every length is checked against what remains of the file.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct TokenizerModelInfo {
  int model_type = 1;  // trainer_spec: 1 unigram, 2 BPE, 3 word, 4 char
  bool whitespace_as_suffix = false;
  std::string_view character_map;  // normalizer_spec; empty: the identity
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::vector<std::int32_t> user_defined;  // ids of the pieces that are taken whole wherever they stand

  /// What encodes a text beside byte-pair merges over its characters: "is a unigram model" and the like; nullptr:
  /// nothing.
  const char* beside_merges() const;
};

/// Throws InputError naming `path` when the bytes are no such message, or hold what SentencePiece would trust and must
/// not: scores that are no numbers, pieces that are empty, endless or not UTF-8, a normaliser that leaves its own
/// table. The view in the result points into `content`.
TokenizerModelInfo parse_tokenizer_model(std::string_view content, const std::string& path);

/// The same model but that encoding puts no space in front of the text.
std::string without_dummy_prefix(std::string content);

}  // namespace zero

#pragma once
// Further contents of a tokenizer.model (a protobuf ModelProto of SentencePiece), read without SentencePiece, whose C++
// interface does not expose them. Every length is checked against the rest of the file.
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
  std::vector<std::int32_t> user_defined;  // ids of the pieces that are always taken whole

  /// The kind of a model that does more than byte-pair merges over characters, such as "is a unigram model". nullptr if
  /// it only merges.
  const char* beside_merges() const;
};

/// Throws InputError with `path` if the bytes are not such a message, or hold values that SentencePiece would trust
/// blindly. Examples are scores that are NaN, pieces that are empty, endless or not UTF-8, and a normaliser that leaves
/// its own table. The view in the result points into `content`.
TokenizerModelInfo parse_tokenizer_model(std::string_view content, const std::string& path);

/// The same model, except that encoding puts no space in front of the text.
std::string without_dummy_prefix(std::string content);

}  // namespace zero

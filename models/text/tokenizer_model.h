#pragma once
// Contents of a tokenizer.model (SentencePiece's protobuf ModelProto) that SentencePiece's C++ interface does not
// expose. Every length is checked against the rest of the file.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct TokenizerModelInfo {
  int model_type = 1;  // trainer_spec: 1 unigram, 2 BPE, 3 word, 4 char
  bool whitespace_as_suffix = false;
  std::string_view character_map;  // normalizer_spec; if empty, text does not change
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::vector<std::int32_t> user_defined;  // ids of the pieces that are never split

  /// The kind of a model that does more than byte-pair merges over characters, such as "is a unigram model". nullptr if
  /// it only merges.
  const char* beside_merges() const;
};

/// Throws InputError with `path` if the bytes are not such a message, or hold bad values that SentencePiece does not
/// check. Examples are NaN scores, pieces that are empty, too long or not UTF-8, and a normaliser that reads outside
/// its table. The view in the result points into `content`.
TokenizerModelInfo parse_tokenizer_model(std::string_view content, const std::string& path);

/// Returns the same model, except that encoding does not prepend a space.
std::string without_dummy_prefix(std::string content);

}  // namespace zero

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

/// The same model with every piece's score replaced by minus its id, so that BPE merges in the order of the ids. That is
/// what transformers does when it makes its own tokenizer of a tokenizer.model (5.x): where scores are not sorted, as those
/// of Llama's runs of spaces, its ids differ from SentencePiece's.
std::string with_scores_by_id(std::string_view content, const std::string& path);

}  // namespace zero

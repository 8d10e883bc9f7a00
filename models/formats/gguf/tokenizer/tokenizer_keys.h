#pragma once
// GgufTokenizerKeys: a tokenizer as the keys tokenizer.ggml.* and tokenizer.chat_template of a GGUF file. With these
// keys llama.cpp encodes, decodes and formats chats like the tokenizer in this project. Does not include LibTorch.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/formats/gguf/tokenizer/gguf_vocabulary.h"
#include "models/formats/gguf_metadata.h"
#include "models/formats/tokenizer_files.h"
#include "models/model_config.h"
#include "models/text/added_tokens.h"

namespace zero {

class GgufTokenizerKeys {
 public:
  /// There are no keys if the source has no tokenizer. Throws InputError if Tokenizer::load does, if the tokenizer does
  /// not match the model, or if llama.cpp would encode differently (pipeline_form.h).
  GgufTokenizerKeys(const TokenizerSource& source, const ModelConfig& config);

  void add_to(GgufMetadata& metadata) const;

  /// The general.name that the file must have. In llama.cpp special tokens consume the white space after them only if
  /// general.name contains "phi-3" or "phi3". Returns an empty text if no name works.
  std::string model_name(const std::string& wanted) const;

 private:
  void take_sentencepiece(const TokenizerSource& source, const ModelConfig& config);
  void take_pipeline(const TokenizerSource& source, const ModelConfig& config);
  void take_ids(const Tokenizer& tokenizer, const std::string& settings, const ModelConfig& config);
  void take_edges(const Tokenizer& tokenizer);
  void note_flags() const;
  bool has_phi3_tokens() const;

  std::string path_, model_ = "no_vocab", pre_;
  GgufVocabulary vocabulary_;
  bool with_scores_ = false;
  std::vector<std::string> merges_;
  std::vector<AddedToken> added_;
  std::map<std::string, std::int64_t> ids_;  // "bos", "eos", "unknown", "padding", "eot"
  bool add_bos_ = false, add_eos_ = false;
  std::optional<bool> space_in_front_;
  std::optional<std::string> chat_template_;
};

}  // namespace zero

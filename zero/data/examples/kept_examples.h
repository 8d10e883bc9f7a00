#pragma once
// KeptExamples: what a run trains of the examples of a file, as token ids, and what became of the others.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "zero/data/examples/conversation_encoder.h"
#include "zero/data/examples/example_windows.h"
#include "zero/data/text/token_cache.h"

namespace zero {

struct ConversationRowsOptions {
  std::int64_t seq_len = 0;  // inputs of a row at most
  Overlong overlong = Overlong::truncate;
  bool packing = false;
  std::int64_t vocab_size = 0;  // of the model: every id must be below
};

/// The examples of a chunk of a file. A token is its id, with trained_bit where it is a target that is trained.
class KeptExamples {
 public:
  static constexpr std::uint32_t trained_bit = 1u << 31;

  explicit KeptExamples(const ConversationRowsOptions& options) : options_(options) {}

  /// Keeps what is to be trained of an example. InputError for an id beyond the vocabulary.
  void add(EncodedExample example);

  /// Tokens end to end, and as notes the counts and each kept example's length and number of trained tokens.
  EncodedChunk take();

 private:
  ConversationRowsOptions options_;
  ExampleCounts counts_;
  std::vector<std::uint32_t> tokens_, lengths_, trained_;
};

/// What the notes of all chunks say, one chunk after the other.
struct ExampleNotes {
  ExampleCounts counts;
  std::vector<std::uint32_t> lengths, trained;  // of each kept example

  static ExampleNotes read(const std::vector<std::uint32_t>& notes);
};

/// How the tokens of the file of examples at `path` (.jsonl or .json) are made. `encoder` is shared with the threads
/// that do it.
CacheRecipe example_recipe(const std::string& path, std::shared_ptr<const ConversationEncoder> encoder,
                           const Fingerprint& encoding, const ConversationRowsOptions& options);

/// Of all that an encoder's ids and masks depend on: the tokenizer, what `options.model_directory` says of
/// conversations, and the options.
Fingerprint fingerprint_of(const Tokenizer& tokenizer, const EncoderOptions& options);

}  // namespace zero

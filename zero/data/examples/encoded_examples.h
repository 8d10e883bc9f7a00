#pragma once
// EncodedExamples: the token ids of the examples in a file on which a run trains, and counts of the others.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "zero/data/examples/conversation_encoder.h"
#include "zero/data/examples/example_windows.h"
#include "zero/data/text/token_cache.h"

namespace zero {

/// The kind of a file's examples: single ones, pairs of answers, or judged answers
/// (zero/data/examples/preference_pair.h).
enum class ExampleUse : std::uint8_t { single, pair, judged };

struct ConversationRowsOptions {
  std::int64_t seq_len = 0;  // maximum inputs of a row
  Overlong overlong = Overlong::truncate;
  bool packing = false;
  std::int64_t vocab_size = 0;  // of the model; every id is below it
  ExampleUse use = ExampleUse::single;
  RowPurpose purpose = RowPurpose::training;
};

/// The kept examples of a chunk. A stored token is its id, with trained_bit set if it is a trained target.
class EncodedExamples {
 public:
  static constexpr std::uint32_t trained_bit = 1u << 31;
  /// Set in the number of trained tokens of a judged answer: it is desirable; it is of the same pair as the answer
  /// before it.
  static constexpr std::uint32_t desirable_bit = 1u << 31, paired_bit = 1u << 30;

  explicit EncodedExamples(const ConversationRowsOptions& options) : options_(options) {}

  /// Keeps the trained part of an example, or of a pair as two sequences. Throws InputError for an id outside the
  /// vocabulary. `marks`: bits of a judged answer. Returns true if anything was kept.
  bool add(EncodedExample example, std::uint32_t marks = 0);
  void add(EncodedPair pair);
  /// Counts a pair of judged answers that are equal.
  void leave_out_equal(const std::string& place);

  /// Returns the concatenated tokens, and notes: the counts, and for each kept example its length, its number of
  /// trained tokens, and its line or row in the file.
  EncodedChunk take();

 private:
  void check_ids(const EncodedExample& example) const;
  void keep(const EncodedExample& sequence, std::uint32_t marks = 0);

  ConversationRowsOptions options_;
  ExampleCounts counts_;
  std::vector<std::uint32_t> tokens_, lengths_, trained_, numbers_;
};

/// The notes of all chunks, in order. A number of trained tokens may hold the bits of a judged answer.
struct ExampleNotes {
  ExampleCounts counts;
  std::vector<std::uint32_t> lengths, trained, numbers;  // per kept example

  static ExampleNotes read(const std::vector<std::uint32_t>& notes);
};

/// Returns the recipe for the tokens of the example file at `path` (.jsonl or .json). The threads that tokenise share
/// `encoder`. Throws InputError if the file is unreadable.
CacheRecipe example_recipe(const std::string& path, std::shared_ptr<const ConversationEncoder> encoder,
                           const Fingerprint& encoding, const ConversationRowsOptions& options);

/// A fingerprint of everything the encoder's ids and masks depend on: the tokenizer, the conversation settings in
/// `options.model_directory`, and the options.
Fingerprint fingerprint_of(const Tokenizer& tokenizer, const EncoderOptions& options);

}  // namespace zero

#pragma once
// KeptSequences: the token sequences of a run's example files, by number. Tokens are read on demand.
#include <cstdint>
#include <string>
#include <vector>

#include "zero/data/examples/encoded_examples.h"

namespace zero {

/// Holds 16 bytes per sequence in memory. Reads are thread-safe.
class KeptSequences {
 public:
  /// `files`: made by example_recipe(), in order. Throws InputError if a file holds no example, or if no token is left
  /// to train.
  KeptSequences(std::vector<CachedTokens> files, const ConversationRowsOptions& options);

  std::int64_t size() const { return static_cast<std::int64_t>(trained_.size()); }
  /// The number of inputs of a sequence, one less than its tokens.
  std::int64_t length(std::int64_t sequence) const { return starts_[sequence + 1] - starts_[sequence] - 1; }
  std::int64_t trained(std::int64_t sequence) const { return trained_[sequence] & (EncodedExamples::paired_bit - 1); }
  bool is_desirable(std::int64_t sequence) const { return (trained_[sequence] & EncodedExamples::desirable_bit) != 0; }
  /// True if the judged answer is of the same pair as the one before it.
  bool is_paired(std::int64_t sequence) const { return (trained_[sequence] & EncodedExamples::paired_bit) != 0; }
  /// Tokens as EncodedExamples stores them.
  void read(std::int64_t sequence, std::vector<std::int64_t>& tokens) const;

  /// The line or row from which a sequence comes, such as "pairs.jsonl:17".
  std::string place(std::int64_t sequence) const;

  const ExampleCounts& counts() const { return counts_; }
  /// The message of warning_of(); may be empty.
  std::string warning() const { return warning_of(counts_, seq_len_, first_, purpose_); }
  /// A message about rows of `sequences_of_a_row` sequences that equal an earlier row; may be empty. Reads all tokens.
  std::string warning_of_repeats(std::int64_t sequences_of_a_row) const;
  /// The names of the files, for messages.
  std::string names() const;
  /// "5 of 80 tokens trained; cut into windows 1, ..."
  std::string describe_tokens() const;

 private:
  std::size_t file_of(std::int64_t sequence) const;

  std::int64_t seq_len_;
  RowPurpose purpose_;
  std::vector<TokenFile> files_;
  std::vector<std::int64_t> file_starts_ = {0};  // start of each file in the concatenated tokens, and the end
  ExampleCounts counts_;
  ExamplePlaces first_;
  std::vector<std::int64_t> starts_ = {0};  // start of each sequence in the concatenated tokens, and the end
  std::vector<std::uint32_t> trained_;      // of each sequence, with the bits of a judged answer
  std::vector<std::uint32_t> numbers_;      // of each sequence: its line or row
};

/// The id of a stored token.
constexpr std::int64_t id_of(std::int64_t token) { return token & ~std::int64_t{EncodedExamples::trained_bit}; }
constexpr bool is_trained(std::int64_t token) { return (token & EncodedExamples::trained_bit) != 0; }

}  // namespace zero

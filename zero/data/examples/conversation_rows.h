#pragma once
// ConversationRows: fine-tuning examples as rows. A row holds one example, or several if they are packed.
#include <cstdint>
#include <string>
#include <vector>

#include "zero/data/examples/kept_sequences.h"
#include "zero/data/rows/row_source.h"

namespace zero {

/// Holds 16 bytes per example in memory, 32 if packed. An example of n tokens has n - 1 inputs
/// and targets. Packed examples restart their positions and have document numbers, so they do not attend to each other.
/// The loss equals that of training them one by one.
class ConversationRows : public RowSource {
 public:
  /// `files`: made by example_recipe(), in order. Throws InputError if no token is left to train.
  ConversationRows(std::vector<CachedTokens> files, ConversationRowsOptions options);

  std::int64_t size() const override;
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override;
  std::int64_t length(std::int64_t index) const override;
  std::string describe() const override;
  std::string warning() const override { return examples_.warning(); }

  const ExampleCounts& counts() const { return examples_.counts(); }

 private:
  void arrange();
  /// Calls `take` for each example of a row.
  template <class Take>
  void each_of(std::int64_t index, const Take& take) const;

  ConversationRowsOptions options_;
  KeptSequences examples_;
  std::vector<std::int64_t> packed_;      // examples, row by row; empty: each is a row
  std::vector<std::int64_t> row_starts_;  // start of each row in packed_, and the end
};

}  // namespace zero

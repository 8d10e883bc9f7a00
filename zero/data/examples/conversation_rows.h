#pragma once
// ConversationRows: fine-tuning examples as rows, one each or several packed into one.
#include <cstdint>
#include <string>
#include <vector>

#include "zero/data/examples/kept_examples.h"
#include "zero/data/rows/row_source.h"

namespace zero {

/// Reads tokens when a row is asked for, and holds what rows are made of: 12 bytes an example, 28 packed. An example of
/// n tokens is n - 1 inputs and targets. Packed ones restart their positions and are numbered, so that none attends to
/// another: the loss is that of training them one by one.
class ConversationRows : public RowSource {
 public:
  /// `files`: of example_recipe(), in order. InputError when nothing is left to train.
  ConversationRows(std::vector<CachedTokens> files, ConversationRowsOptions options);

  std::int64_t size() const override;
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override;
  std::int64_t length(std::int64_t index) const override;
  std::string describe() const override;
  std::string warning() const override { return warning_of(counts_, options_.seq_len); }

  const ExampleCounts& counts() const { return counts_; }

 private:
  void arrange();
  std::string names() const;  // of the files
  std::int64_t examples() const { return static_cast<std::int64_t>(trained_.size()); }
  std::int64_t length_of(std::int64_t example) const { return starts_[example + 1] - starts_[example] - 1; }
  void read(std::int64_t example, std::vector<std::int64_t>& tokens) const;
  /// Calls `take` with the examples of a row.
  template <class Take>
  void each_of(std::int64_t index, const Take& take) const;

  ConversationRowsOptions options_;
  std::vector<TokenFile> files_;
  std::vector<std::int64_t> file_starts_ = {0};  // of each file in the tokens of all, and their end
  ExampleCounts counts_;
  std::vector<std::int64_t> starts_ = {0};  // of each example in the tokens of all files, and their end
  std::vector<std::uint32_t> trained_;      // tokens of each example
  std::vector<std::int64_t> packed_;        // examples, row by row; empty: each is a row
  std::vector<std::int64_t> row_starts_;    // of each row in packed_, and their end
};

}  // namespace zero

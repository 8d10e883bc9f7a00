#pragma once
// ConversationRows: fine-tuning examples as rows, one each or several packed into one.
#include <cstdint>
#include <string>
#include <vector>

#include "zero/data/conversation_encoder.h"
#include "zero/data/row_source.h"

namespace zero {

/// What becomes of an example with more than seq_len + 1 tokens: its start is kept, or it is left out.
enum class Overlong : std::uint8_t { truncate, drop };

/// "truncate" or "drop"; InputError otherwise.
Overlong overlong_of(const std::string& name);

struct ConversationRowsOptions {
  std::int64_t seq_len = 0;        // inputs of a row at most
  Overlong overlong = Overlong::truncate;
  bool packing = false;
  std::int64_t vocab_size = 0;     // of the model: every id must be below
};

/// What happened to the examples of all files.
struct ExampleCounts {
  std::int64_t examples = 0;
  std::int64_t truncated = 0;
  std::int64_t dropped_overlong = 0;
  std::int64_t dropped_untrained = 0;  // nothing to train in what was left
};

/// Holds the ids of all examples, 4 bytes and a bit each. An example of n tokens is n - 1 inputs and targets. Packed ones
/// restart their positions and are numbered, so that none attends to another: the loss is that of training them one by one.
class ConversationRows : public RowSource {
 public:
  /// Reads and encodes every example of the files, in order. InputError for what the user can mend, among it that nothing
  /// is left to train.
  ConversationRows(const std::vector<std::string>& files, const ConversationEncoder& encoder, ConversationRowsOptions options);

  std::int64_t size() const override { return static_cast<std::int64_t>(row_starts_.size()) - 1; }
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override;
  std::int64_t length(std::int64_t index) const override;
  std::string describe() const override;

  const ExampleCounts& counts() const { return counts_; }

 private:
  void add(EncodedExample example);
  void arrange();
  std::int64_t document_length(std::int64_t document) const { return starts_[document + 1] - starts_[document] - 1; }

  ConversationRowsOptions options_;
  std::string files_;                         // for describe()
  ExampleCounts counts_;
  std::vector<std::int32_t> ids_;             // of all kept examples, end to end
  std::vector<bool> trained_;
  std::vector<std::int64_t> starts_ = {0};    // of each example in ids_, and their end
  std::vector<std::int32_t> trained_counts_;  // of each example
  std::vector<std::int64_t> documents_;       // examples, row by row
  std::vector<std::int64_t> row_starts_ = {0};// of each row in documents_, and their end
};

}  // namespace zero

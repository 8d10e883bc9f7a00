#pragma once
// JudgedRows: judged answers as rows, one each. MismatchedRows: their prompts with answers of other rows, from which
// KTO estimates how far the model is from its reference.
#include <memory>

#include "zero/data/examples/kept_sequences.h"
#include "zero/data/rows/row_source.h"

namespace zero {

class JudgedRows final : public RowSource {
 public:
  /// `files`: made by example_recipe() for judged answers. Throws InputError as KeptSequences does.
  JudgedRows(std::vector<CachedTokens> files, const ConversationRowsOptions& options);

  /// Row i has the prompt of row i and the answer of the nearest row before it that has another prompt. Every `group`
  /// rows form a ring: the first row takes the answer of the last one. This is TRL's rule for batches of this size in
  /// the order of the data, except that a pair does not exchange its answers, and that a last row alone joins the ring
  /// before it. A row longer than seq_len is cut.
  std::shared_ptr<const RowSource> mismatched(std::int64_t group) const;

  std::int64_t size() const override { return sequences_->size(); }
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override { return sequences_->trained(index); }
  std::int64_t length(std::int64_t index) const override { return sequences_->length(index); }
  std::vector<std::string> named_tensors() const override;
  std::string describe() const override;
  std::string warning() const override;

  bool is_desirable(std::int64_t index) const { return sequences_->is_desirable(index); }
  /// True if this answer and that of the row before are a pair, whose desirable answer comes first.
  bool is_paired(std::int64_t index) const { return sequences_->is_paired(index); }

 private:
  std::int64_t desirable() const;

  std::shared_ptr<const KeptSequences> sequences_;
  std::int64_t seq_len_;
};

}  // namespace zero

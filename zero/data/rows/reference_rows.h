#pragma once
// ReferenceRows: rows with the log-probabilities of their sequences under a reference model, which are known only after
// the rows were opened. No LibTorch.
#include <memory>
#include <span>

#include "zero/data/rows/row_source.h"

namespace zero {

/// Adds the named tensor reference_name (models/loss/dpo_loss.h) to the rows of a source.
class ReferenceRows final : public RowSource {
 public:
  /// No value is known yet.
  ReferenceRows(std::shared_ptr<const RowSource> rows, std::int64_t sequences_of_a_row);

  /// `values`: [size(), sequences of a row]; NaN where they are not known.
  void fill(std::vector<float> values);
  /// `values`: [rows.size(), sequences of a row] of these rows, all known.
  void set(std::span<const std::int64_t> rows, std::span<const float> values);

  const std::shared_ptr<const RowSource>& rows() const { return rows_; }
  std::int64_t sequences_of_a_row() const { return sequences_; }
  /// As fill() takes them.
  const std::vector<float>& values() const { return values_; }
  /// True if the values of a row are known.
  bool has_values(std::int64_t row) const;

  std::int64_t size() const override { return rows_->size(); }
  /// Only for rows whose values are known.
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override { return rows_->trained_tokens(index); }
  std::int64_t first_trained(std::int64_t index) const override { return rows_->first_trained(index); }
  std::int64_t length(std::int64_t index) const override { return rows_->length(index); }
  std::vector<std::string> named_tensors() const override;
  std::string describe() const override { return rows_->describe(); }
  std::string warning() const override { return rows_->warning(); }

 private:
  std::shared_ptr<const RowSource> rows_;
  std::int64_t sequences_;
  std::vector<float> values_;
};

/// A hash of all rows: ids, targets and documents.
std::uint64_t hash_of(const RowSource& rows);

}  // namespace zero

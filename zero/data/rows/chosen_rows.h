#pragma once
// ChosenRows: some rows of a source, in a given order. No LibTorch.
#include <memory>
#include <utility>
#include <vector>

#include "zero/data/rows/row_source.h"

namespace zero {

class ChosenRows final : public RowSource {
 public:
  /// `chosen`: the numbers of the rows in the source.
  ChosenRows(std::shared_ptr<const RowSource> rows, std::vector<std::int64_t> chosen)
      : rows_(std::move(rows)), chosen_(std::move(chosen)) {}

  const std::vector<std::int64_t>& chosen() const { return chosen_; }

  std::int64_t size() const override { return std::ssize(chosen_); }
  Row row(std::int64_t index) const override { return rows_->row(place(index)); }
  std::int64_t trained_tokens(std::int64_t index) const override { return rows_->trained_tokens(place(index)); }
  std::int64_t first_trained(std::int64_t index) const override { return rows_->first_trained(place(index)); }
  std::int64_t length(std::int64_t index) const override { return rows_->length(place(index)); }
  std::vector<std::string> named_tensors() const override { return rows_->named_tensors(); }
  std::string describe() const override { return rows_->describe(); }

 private:
  std::int64_t place(std::int64_t index) const { return chosen_[std::size_t(index)]; }

  std::shared_ptr<const RowSource> rows_;
  std::vector<std::int64_t> chosen_;
};

}  // namespace zero

#pragma once
// HeldOutRows: divides the rows of a source into rows to train on and rows to validate on, evenly over the source.
#include <memory>

#include "zero/data/rows/row_source.h"

namespace zero {

/// The source is divided into `held` runs of rows whose lengths differ by at most one. One row of each run is held out,
/// chosen by a hash of the run's number. The division depends on nothing else, so it is the same on any ranks and after
/// a resumption.
class HeldOutRows final : public RowSource {
 public:
  enum class Side : std::uint8_t { training, validation };

  /// `held`: the number of rows that are held out, at least 1 and fewer than all.
  HeldOutRows(std::shared_ptr<const RowSource> rows, std::int64_t held, Side side);

  std::int64_t size() const override;
  Row row(std::int64_t index) const override { return rows_->row(place(index)); }
  std::int64_t trained_tokens(std::int64_t index) const override { return rows_->trained_tokens(place(index)); }
  std::int64_t first_trained(std::int64_t index) const override { return rows_->first_trained(place(index)); }
  std::int64_t length(std::int64_t index) const override { return rows_->length(place(index)); }
  std::vector<std::string> named_tensors() const override { return rows_->named_tensors(); }
  std::string describe() const override;
  std::string warning() const override { return side_ == Side::training ? rows_->warning() : ""; }

  /// The number of the row in the source.
  std::int64_t place(std::int64_t index) const;

 private:
  /// The first row of a run; the number of rows for run `held`.
  std::int64_t run_begin(std::int64_t run) const;
  std::int64_t held_row(std::int64_t run) const;

  std::shared_ptr<const RowSource> rows_;
  std::int64_t held_;
  Side side_;
};

}  // namespace zero

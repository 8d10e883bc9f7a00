#include "zero/data/rows/held_out_rows.h"

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"

namespace zero {
namespace {

std::int64_t scaled(std::int64_t value, std::int64_t by, std::int64_t over) {
  return static_cast<std::int64_t>(static_cast<__int128>(value) * by / over);
}

}  // namespace

HeldOutRows::HeldOutRows(std::shared_ptr<const RowSource> rows, std::int64_t held, Side side)
    : rows_(std::move(rows)), held_(held), side_(side) {
  ZERO_CHECK(held > 0 && held < rows_->size(), "some rows are held out, and some are left");
}

std::int64_t HeldOutRows::size() const { return side_ == Side::validation ? held_ : rows_->size() - held_; }

std::int64_t HeldOutRows::run_begin(std::int64_t run) const { return scaled(run, rows_->size(), held_); }

std::int64_t HeldOutRows::held_row(std::int64_t run) const {
  const std::int64_t begin = run_begin(run), length = run_begin(run + 1) - begin;
  const std::uint64_t hash = SplitMix64(static_cast<std::uint64_t>(run)).next();
  return begin + static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(length));
}

std::int64_t HeldOutRows::place(std::int64_t index) const {
  if (side_ == Side::validation) return held_row(index);
  const auto trained_before = [&](std::int64_t run) { return run_begin(run) - run; };
  std::int64_t run = scaled(index, held_, size());  // exact up to one
  while (run > 0 && trained_before(run) > index) --run;
  while (trained_before(run + 1) <= index) ++run;
  const std::int64_t row = run_begin(run) + index - trained_before(run);
  return row < held_row(run) ? row : row + 1;
}

std::string HeldOutRows::describe() const {
  if (side_ == Side::validation) return text(held_, " of the training data's ", rows_->size(), " rows, held out");
  return text(rows_->describe(), "; ", held_, " of these rows are held out for validation");
}

}  // namespace zero

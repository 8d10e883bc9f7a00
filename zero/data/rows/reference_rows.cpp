#include "zero/data/rows/reference_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "models/loss/dpo_loss.h"

namespace zero {

ReferenceRows::ReferenceRows(std::shared_ptr<const RowSource> rows, std::int64_t sequences_of_a_row)
    : rows_(std::move(rows)),
      sequences_(sequences_of_a_row),
      values_(std::size_t(rows_->size() * sequences_), std::numeric_limits<float>::quiet_NaN()) {}

void ReferenceRows::fill(std::vector<float> values) {
  ZERO_CHECK(std::ssize(values) == size() * sequences_, "every sequence has one log-probability");
  values_ = std::move(values);
}

void ReferenceRows::set(std::span<const std::int64_t> rows, std::span<const float> values) {
  ZERO_CHECK(std::ssize(values) == std::ssize(rows) * sequences_, "every sequence has one log-probability");
  auto from = values.begin();
  for (const std::int64_t row : rows) {
    std::copy_n(from, sequences_, values_.begin() + row * sequences_);
    from += sequences_;
  }
}

bool ReferenceRows::has_values(std::int64_t row) const { return !std::isnan(values_[std::size_t(row * sequences_)]); }

Row ReferenceRows::row(std::int64_t index) const {
  ZERO_CHECK(has_values(index), "the reference's log-probabilities are not known yet");
  Row row = rows_->row(index);
  const auto first = values_.begin() + index * sequences_;
  row.named[reference_name] = {first, first + sequences_};
  return row;
}

std::vector<std::string> ReferenceRows::named_tensors() const {
  std::vector<std::string> names = rows_->named_tensors();
  names.emplace_back(reference_name);
  return names;
}

std::uint64_t hash_of(const RowSource& rows) {
  std::uint64_t hash = fnv1a("");
  const auto add = [&](const auto& numbers) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
    const std::uint64_t part[] = {bytes.size(), crc32c_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()})};
    hash = fnv1a({reinterpret_cast<const char*>(part), sizeof part}, hash);
  };
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const Row row = rows.row(i);
    add(row.ids);
    add(row.targets);
    add(row.documents);
  }
  return hash;
}

}  // namespace zero

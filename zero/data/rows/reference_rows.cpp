#include "zero/data/rows/reference_rows.h"

#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "models/loss/dpo_loss.h"

namespace zero {

void ReferenceRows::fill(std::vector<float> values) {
  ZERO_CHECK(std::ssize(values) == size() * sequences_, "every sequence has one log-probability");
  values_ = std::move(values);
}

Row ReferenceRows::row(std::int64_t index) const {
  ZERO_CHECK(has_values(), "the reference's log-probabilities are not known yet");
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

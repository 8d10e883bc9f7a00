#include "zero/data/examples/conversation_rows.h"

#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "models/unit.h"
#include "zero/data/examples/example_file.h"
#include "zero/data/rows/packing.h"

namespace zero {

ConversationRows::ConversationRows(std::vector<CachedTokens> files, ConversationRowsOptions options)
    : options_(options), examples_(std::move(files), options) {
  if (options_.packing) arrange();
}

void ConversationRows::arrange() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t example = 0; example < examples_.size(); ++example) lengths.push_back(examples_.length(example));
  row_starts_ = {0};
  for (const std::vector<std::int64_t>& row : pack(lengths, options_.seq_len)) {
    packed_.insert(packed_.end(), row.begin(), row.end());
    row_starts_.push_back(static_cast<std::int64_t>(packed_.size()));
  }
}

std::int64_t ConversationRows::size() const {
  return options_.packing && !row_starts_.empty() ? static_cast<std::int64_t>(row_starts_.size()) - 1
                                                  : examples_.size();
}

template <class Take>
void ConversationRows::each_of(std::int64_t index, const Take& take) const {
  ZERO_CHECK(index >= 0 && index < size(), text("row ", index, " of ", size()));
  if (packed_.empty()) return take(index);
  for (std::int64_t place = row_starts_[index]; place < row_starts_[index + 1]; ++place) take(packed_[place]);
}

Row ConversationRows::row(std::int64_t index) const {
  std::int64_t count = 0;
  each_of(index, [&](std::int64_t) { ++count; });
  Row row;
  std::vector<std::int64_t> tokens;
  std::int32_t document = 0;
  each_of(index, [&](std::int64_t example) {
    examples_.read(example, tokens);
    for (std::int64_t t = 0; t < examples_.length(example); ++t) {
      const std::int64_t next = tokens[t + 1];
      row.ids.push_back(id_of(tokens[t]));
      row.targets.push_back(is_trained(next) ? id_of(next) : ignored_target);
      if (count == 1) continue;
      row.positions.push_back(t);
      row.documents.push_back(document);
    }
    ++document;
  });
  return row;
}

std::int64_t ConversationRows::trained_tokens(std::int64_t index) const {
  std::int64_t sum = 0;
  each_of(index, [&](std::int64_t example) { sum += examples_.trained(example); });
  return sum;
}

std::int64_t ConversationRows::length(std::int64_t index) const {
  std::int64_t sum = 0;
  each_of(index, [&](std::int64_t example) { sum += examples_.length(example); });
  return sum;
}

std::string ConversationRows::describe() const {
  return text(examples_.names(), ": ", counted(counts().examples, "example"), " in ",
              counted(size(), options_.packing ? "packed row" : "row"), " of at most ", options_.seq_len, ", ",
              examples_.describe_tokens());
}

}  // namespace zero

#include "zero/data/examples/conversation_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "models/unit.h"
#include "zero/data/examples/example_file.h"
#include "zero/data/rows/packing.h"

namespace zero {

ConversationRows::ConversationRows(std::vector<CachedTokens> files, ConversationRowsOptions options)
    : options_(options) {
  ZERO_CHECK(options_.seq_len > 0 && !files.empty(), "rows have a length and come from files");
  for (CachedTokens& file : files) {
    const ExampleNotes notes = ExampleNotes::read(file.notes);
    counts_ += notes.counts;
    if (notes.counts.examples == 0)
      throw InputError(text(file.ids.name(), ": holds no example: take it out, or name a file with examples"));
    for (const std::uint32_t length : notes.lengths) starts_.push_back(starts_.back() + length);
    trained_.insert(trained_.end(), notes.trained.begin(), notes.trained.end());
    file_starts_.push_back(starts_.back());
    files_.push_back(std::move(file.ids));
  }
  if (trained_.empty())
    throw InputError(text(names(), ": nothing is left to train with training.seq_len = ", options_.seq_len, " (",
                          counts_.examples, " examples, ", counts_.dropped_overlong, " of them left out as too long, ",
                          counts_.dropped_untrained, " without anything to train): ", remedy_of(counts_)));
  if (options_.packing) arrange();
}

void ConversationRows::arrange() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t example = 0; example < examples(); ++example) lengths.push_back(length_of(example));
  row_starts_ = {0};
  for (const std::vector<std::int64_t>& row : pack(lengths, options_.seq_len)) {
    packed_.insert(packed_.end(), row.begin(), row.end());
    row_starts_.push_back(static_cast<std::int64_t>(packed_.size()));
  }
}

std::int64_t ConversationRows::size() const {
  return options_.packing && !row_starts_.empty() ? static_cast<std::int64_t>(row_starts_.size()) - 1 : examples();
}

template <class Take>
void ConversationRows::each_of(std::int64_t index, const Take& take) const {
  ZERO_CHECK(index >= 0 && index < size(), text("row ", index, " of ", size()));
  if (packed_.empty()) return take(index);
  for (std::int64_t place = row_starts_[index]; place < row_starts_[index + 1]; ++place) take(packed_[place]);
}

void ConversationRows::read(std::int64_t example, std::vector<std::int64_t>& tokens) const {
  const std::int64_t start = starts_[example];
  const auto file = std::upper_bound(file_starts_.begin(), file_starts_.end(), start) - file_starts_.begin() - 1;
  tokens.resize(static_cast<std::size_t>(starts_[example + 1] - start));
  files_[file].read(start - file_starts_[file], static_cast<std::int64_t>(tokens.size()), tokens.data());
}

Row ConversationRows::row(std::int64_t index) const {
  std::int64_t count = 0;
  each_of(index, [&](std::int64_t) { ++count; });
  Row row;
  std::vector<std::int64_t> tokens;
  std::int32_t document = 0;
  each_of(index, [&](std::int64_t example) {
    read(example, tokens);
    for (std::int64_t t = 0; t < length_of(example); ++t) {
      const std::int64_t next = tokens[t + 1];
      row.ids.push_back(tokens[t] & ~std::int64_t{EncodedExamples::trained_bit});
      row.targets.push_back(next & EncodedExamples::trained_bit ? next & ~std::int64_t{EncodedExamples::trained_bit}
                                                                : ignored_target);
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
  each_of(index, [&](std::int64_t example) { sum += trained_[example]; });
  return sum;
}

std::int64_t ConversationRows::length(std::int64_t index) const {
  std::int64_t sum = 0;
  each_of(index, [&](std::int64_t example) { sum += length_of(example); });
  return sum;
}

std::string ConversationRows::names() const {
  std::string all;
  for (const TokenFile& file : files_) all += (all.empty() ? "" : ", ") + file.name();
  return all;
}

std::string ConversationRows::describe() const {
  const std::int64_t trained = std::accumulate(trained_.begin(), trained_.end(), std::int64_t{0});
  return text(names(), ": ", counts_.examples, " examples in ", size(), options_.packing ? " packed rows" : " rows",
              " of at most ", options_.seq_len, ", ", trained, " of ", starts_.back(),
              " tokens trained; cut into windows ", counts_.cut, ", truncated ", counts_.truncated, ", dropped ",
              counts_.dropped_overlong, " too long and ", counts_.dropped_untrained, " with nothing to train");
}

}  // namespace zero

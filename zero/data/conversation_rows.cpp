#include "zero/data/conversation_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/error.h"
#include "comm/log.h"
#include "models/unit.h"
#include "zero/data/packing.h"

namespace zero {

Overlong overlong_of(const std::string& name) {
  if (name == "truncate") return Overlong::truncate;
  if (name == "drop") return Overlong::drop;
  throw InputError(text("data.overlong = \"", name, "\" is not known: it is truncate or drop"));
}

ConversationRows::ConversationRows(const std::vector<std::string>& files, const ConversationEncoder& encoder, ConversationRowsOptions options)
    : options_(options) {
  ZERO_CHECK(options_.seq_len > 0 && !files.empty(), "rows have a length and come from files");
  for (const std::string& file : files) {
    read_examples(file, [&](const Example& example) {
      add(encoder.encode(example));
      return true;
    });
    files_ += (files_.empty() ? "" : ", ") + file;
  }
  if (starts_.size() == 1) throw InputError(text("nothing is left to train: ", describe(), "; raise training.seq_len or look at the data with --preview"));
  arrange();
}

void ConversationRows::add(EncodedExample example) {
  ++counts_.examples;
  for (const std::int32_t id : example.ids)
    if (id >= options_.vocab_size) throw InputError(text(example.place, ": id ", id, " is beyond the model's vocabulary of ", options_.vocab_size));
  const auto most = static_cast<std::size_t>(options_.seq_len) + 1;
  if (example.ids.size() > most) {
    if (options_.overlong == Overlong::drop) {
      ++counts_.dropped_overlong;
      return;
    }
    example.ids.resize(most);
    example.trained.resize(most);
    ++counts_.truncated;
  }
  const auto trained = static_cast<std::int32_t>(std::count(example.trained.begin(), example.trained.end(), 1));
  if (trained == 0) {
    ++counts_.dropped_untrained;
    return;
  }
  ids_.insert(ids_.end(), example.ids.begin(), example.ids.end());
  trained_.insert(trained_.end(), example.trained.begin(), example.trained.end());
  starts_.push_back(static_cast<std::int64_t>(ids_.size()));
  trained_counts_.push_back(trained);
}

void ConversationRows::arrange() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t document = 0; document + 1 < static_cast<std::int64_t>(starts_.size()); ++document) lengths.push_back(document_length(document));
  if (!options_.packing) {
    documents_.resize(lengths.size());
    row_starts_.resize(lengths.size() + 1);
    std::iota(documents_.begin(), documents_.end(), 0);
    std::iota(row_starts_.begin(), row_starts_.end(), 0);
    return;
  }
  for (const std::vector<std::int64_t>& row : pack(lengths, options_.seq_len)) {
    documents_.insert(documents_.end(), row.begin(), row.end());
    row_starts_.push_back(static_cast<std::int64_t>(documents_.size()));
  }
}

Row ConversationRows::row(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < size(), text("row ", index, " of ", size()));
  const std::int64_t first = row_starts_[index], end = row_starts_[index + 1];
  const bool several = end - first > 1;
  Row row;
  for (std::int64_t place = first; place < end; ++place) {
    const std::int64_t document = documents_[place], start = starts_[document];
    for (std::int64_t t = 0; t < document_length(document); ++t) {
      row.ids.push_back(ids_[start + t]);
      row.targets.push_back(trained_[start + t + 1] ? ids_[start + t + 1] : ignored_target);
      if (!several) continue;
      row.positions.push_back(t);
      row.documents.push_back(static_cast<std::int32_t>(place - first));
    }
  }
  return row;
}

std::int64_t ConversationRows::trained_tokens(std::int64_t index) const {
  std::int64_t sum = 0;
  for (std::int64_t place = row_starts_[index]; place < row_starts_[index + 1]; ++place) sum += trained_counts_[documents_[place]];
  return sum;
}

std::int64_t ConversationRows::length(std::int64_t index) const {
  std::int64_t sum = 0;
  for (std::int64_t place = row_starts_[index]; place < row_starts_[index + 1]; ++place) sum += document_length(documents_[place]);
  return sum;
}

std::string ConversationRows::describe() const {
  const std::int64_t trained = std::accumulate(trained_counts_.begin(), trained_counts_.end(), std::int64_t{0});
  return text(files_, ": ", counts_.examples, " examples in ", size(), options_.packing ? " packed rows" : " rows", " of at most ", options_.seq_len, ", ",
              trained, " of ", ids_.size(), " tokens trained; truncated ", counts_.truncated, ", dropped ", counts_.dropped_overlong,
              " too long and ", counts_.dropped_untrained, " with nothing to train");
}

}  // namespace zero

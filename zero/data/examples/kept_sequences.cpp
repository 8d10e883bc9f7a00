#include "zero/data/examples/kept_sequences.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/hash.h"
#include "base/log.h"
#include "zero/data/examples/example_reader.h"

namespace zero {
namespace {

std::string place_in(const std::string& path, std::int64_t number) {
  return place_of(path, is_there(path) ? form_of(path) : ExampleForm::lines, number);
}

}  // namespace

KeptSequences::KeptSequences(std::vector<CachedTokens> files, const ConversationRowsOptions& options)
    : seq_len_(options.seq_len), purpose_(options.purpose) {
  ZERO_CHECK(seq_len_ > 0 && !files.empty(), "rows have a length and come from files");
  for (CachedTokens& file : files) {
    const ExampleNotes notes = ExampleNotes::read(file.notes);
    counts_ += notes.counts;
    const auto note = [&](std::string& first, std::int64_t number) {
      if (first.empty() && number > 0) first = place_in(file.ids.name(), number);
    };
    note(first_.untrained, notes.counts.first_untrained);
    note(first_.equal, notes.counts.first_equal);
    note(first_.blank, notes.counts.first_blank);
    if (notes.counts.examples == 0)
      throw InputError(text(file.ids.name(), ": holds no example: take it out, or name a file with examples"));
    for (const std::uint32_t length : notes.lengths) starts_.push_back(starts_.back() + length);
    trained_.insert(trained_.end(), notes.trained.begin(), notes.trained.end());
    numbers_.insert(numbers_.end(), notes.numbers.begin(), notes.numbers.end());
    file_starts_.push_back(starts_.back());
    files_.push_back(std::move(file.ids));
  }
  if (!trained_.empty()) return;
  throw InputError(text(names(), ": ", refusal_of(counts_, seq_len_, first_, purpose_)));
}

std::size_t KeptSequences::file_of(std::int64_t sequence) const {
  const auto behind = std::upper_bound(file_starts_.begin(), file_starts_.end(), starts_[sequence]);
  return std::size_t(behind - file_starts_.begin() - 1);
}

std::string KeptSequences::place(std::int64_t sequence) const {
  return place_in(files_[file_of(sequence)].name(), numbers_[sequence]);
}

std::string KeptSequences::warning_of_repeats(std::int64_t sequences_of_a_row) const {
  std::unordered_map<std::uint64_t, std::int64_t> rows;  // by hash: the first sequence of the first row
  std::vector<std::int64_t> tokens;
  std::int64_t repeats = 0;
  std::string first;
  for (std::int64_t row = 0; row < size(); row += sequences_of_a_row) {
    std::uint64_t hash = fnv1a("");
    for (std::int64_t s = row; s < row + sequences_of_a_row; ++s) {
      read(s, tokens);
      tokens.push_back(is_desirable(s) ? -1 : -2);  // ends the sequence
      hash = fnv1a({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof tokens[0]}, hash);
    }
    const auto [earlier, is_new] = rows.emplace(hash, row);
    if (is_new) continue;
    if (repeats++ == 0) first = text(place(row), " is the same as ", place(earlier->second));
  }
  if (repeats == 0) return "";
  return text(repeats, " of ", size() / sequences_of_a_row, " rows repeat an earlier one (", first,
              "): they count more than once; leave them out if that is not meant");
}

void KeptSequences::read(std::int64_t sequence, std::vector<std::int64_t>& tokens) const {
  const std::int64_t start = starts_[sequence];
  const std::size_t file = file_of(sequence);
  tokens.resize(static_cast<std::size_t>(starts_[sequence + 1] - start));
  files_[file].read(start - file_starts_[file], static_cast<std::int64_t>(tokens.size()), tokens.data());
}

std::string KeptSequences::names() const {
  std::string all;
  for (const TokenFile& file : files_) all += (all.empty() ? "" : ", ") + file.name();
  return all;
}

std::string KeptSequences::describe_tokens() const {
  std::int64_t sum = 0;
  for (std::int64_t sequence = 0; sequence < size(); ++sequence) sum += trained(sequence);
  const bool judges = purpose_ == RowPurpose::evaluation;
  return text(sum, " of ", starts_.back(), " tokens ", judges ? "judged" : "trained", "; cut into windows ",
              counts_.cut, ", truncated ", counts_.truncated, ", dropped ", counts_.dropped_overlong, " too long and ",
              counts_.dropped_untrained, " with nothing to ", judges ? "judge" : "train",
              counts_.dropped_equal > 0 ? text(", and ", counts_.dropped_equal, " with equal answers") : "");
}

}  // namespace zero

#include "zero/data/examples/kept_sequences.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {

KeptSequences::KeptSequences(std::vector<CachedTokens> files, std::int64_t seq_len) {
  ZERO_CHECK(seq_len > 0 && !files.empty(), "rows have a length and come from files");
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
    throw InputError(text(names(), ": nothing is left to train with training.seq_len = ", seq_len, " (",
                          counts_.examples, " examples, ", counts_.dropped_overlong, " of them left out as too long, ",
                          counts_.dropped_untrained, " without anything to train): ", remedy_of(counts_)));
}

void KeptSequences::read(std::int64_t sequence, std::vector<std::int64_t>& tokens) const {
  const std::int64_t start = starts_[sequence];
  const auto file = std::upper_bound(file_starts_.begin(), file_starts_.end(), start) - file_starts_.begin() - 1;
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
  return text(sum, " of ", starts_.back(), " tokens trained; cut into windows ", counts_.cut, ", truncated ",
              counts_.truncated, ", dropped ", counts_.dropped_overlong, " too long and ", counts_.dropped_untrained,
              " with nothing to train");
}

}  // namespace zero

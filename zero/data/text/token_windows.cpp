#include "zero/data/text/token_windows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

std::vector<std::int64_t> starts_of(const std::vector<TokenFile>& files) {
  std::vector<std::int64_t> starts = {0};
  for (const TokenFile& file : files) starts.push_back(starts.back() + file.size());
  return starts;
}

std::string names_of(const std::vector<TokenFile>& files) {
  if (files.size() == 1) return files[0].name();
  return text(files[0].name(), " and ", files.size() - 1, files.size() == 2 ? " more file" : " more files");
}

[[noreturn]] void refuse_id(const TokenFile& file, std::int64_t place, std::int64_t vocab_size) {
  std::int64_t id = 0;
  file.read(place, 1, &id);
  throw InputError(
      text(file.place_of(place), ": id ", id, " is beyond the model's vocabulary of ", vocab_size,
           "; the file was made for another tokenizer, or its ids are of another type (data.token_dtype)"));
}

}  // namespace

TokenWindows::TokenWindows(std::vector<TokenFile> files, std::int64_t seq_len, PartialWindow tail)
    : files_(std::move(files)), starts_(starts_of(files_)), seq_len_(seq_len) {
  ZERO_CHECK(!files_.empty() && seq_len_ > 0, "a stream has a file, a window has a token");
  const std::int64_t targets = starts_.back() - 1;  // the last token is a target only
  rows_ = tail == PartialWindow::keep ? (targets + seq_len_ - 1) / seq_len_ : targets / seq_len_;
  if (rows_ > 0) return;
  const std::int64_t tokens = starts_.back();
  const std::string has = text(names_of(files_), starts_.size() == 2 ? " has " : " have ", tokens,
                               tokens == 1 ? " token" : " tokens", ", too few for one row: at least ");
  if (tail == PartialWindow::keep) throw InputError(has + "2 are needed, one to predict the other");
  throw InputError(
      text(has, seq_len_ + 1, " are needed (training.seq_len + 1); give more data or a smaller training.seq_len"));
}

std::int64_t TokenWindows::length(std::int64_t index) const {
  return std::min(seq_len_, starts_.back() - 1 - index * seq_len_);
}

Row TokenWindows::row(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < rows_, text("row ", index, " of ", rows_));
  const std::int64_t count = length(index);
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(count) + 1);
  read(index * seq_len_, count + 1, tokens.data());
  Row row;
  row.ids.assign(tokens.begin(), tokens.end() - 1);
  row.targets.assign(tokens.begin() + 1, tokens.end());
  return row;
}

void TokenWindows::read(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  auto file = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin() - 1);
  while (count > 0) {
    const std::int64_t here = std::min(count, starts_[file + 1] - first);
    files_[file].read(first - starts_[file], here, out);
    first += here;
    out += here;
    count -= here;
    ++file;
  }
}

std::string TokenWindows::describe() const {
  return text(names_of(files_), ": ", counted(starts_.back(), "token"), ", ", counted(rows_, "window"), " of ",
              seq_len_);
}

void check_token_ids(const std::vector<TokenFile>& files, std::int64_t vocab_size, Communicator& comm) {
  const std::vector<std::int64_t> starts = starts_of(files);
  const std::int64_t begin = starts.back() * comm.rank() / comm.size(),
                     end = starts.back() * (comm.rank() + 1) / comm.size();
  // The file and offset of the first bad id in this rank's part, shared with all ranks.
  std::array<std::int64_t, 2> bad{-1, -1};
  all_or_none(comm, [&] {
    for (std::size_t i = 0; i < files.size() && bad[1] < 0; ++i) {
      const std::int64_t from = std::max(begin, starts[i]) - starts[i], to = std::min(end, starts[i + 1]) - starts[i];
      if (from < to) bad = {static_cast<std::int64_t>(i), files[i].find_beyond(vocab_size, from, to)};
    }
  });
  // Ascending ranks check ascending parts of the stream, so the first hit is the first bad id.
  const std::vector<std::int64_t> all = all_gather_numbers(comm, bad);
  for (std::size_t r = 0; r < all.size(); r += bad.size())
    if (all[r + 1] >= 0) refuse_id(files[static_cast<std::size_t>(all[r])], all[r + 1], vocab_size);
}

}  // namespace zero

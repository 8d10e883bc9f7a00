#pragma once
// TokenWindows: the rows of a token stream, which is the concatenation of all files' tokens. Window w is
// tokens[w*seq_len .. w*seq_len + seq_len]: the first seq_len ids are the input, the last seq_len the targets.
#include <memory>
#include <string>
#include <vector>

#include "zero/data/rows/row_source.h"
#include "zero/data/text/token_file.h"

namespace zero {

class Communicator;

/// Treatment of tokens after the last full window: training drops them, validation keeps them as a shorter row.
enum class PartialWindow : std::uint8_t { drop, keep };

class TokenWindows : public RowSource {
 public:
  /// Throws InputError if the files together are too short for one row.
  TokenWindows(std::vector<TokenFile> files, std::int64_t seq_len, PartialWindow tail);

  std::int64_t size() const override { return rows_; }
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override { return length(index); }
  std::int64_t length(std::int64_t index) const override;
  std::string describe() const override;

 private:
  void read(std::int64_t first, std::int64_t count, std::int64_t* out) const;

  std::vector<TokenFile> files_;
  std::vector<std::int64_t> starts_;  // start of each file in the stream, and the stream's end
  std::int64_t seq_len_;
  std::int64_t rows_;
};

/// Checks every id once; ranks share the work. On all ranks throws InputError that names the first file and offset with
/// an id of vocab_size or more, if there is one. Collective.
void check_token_ids(const std::vector<TokenFile>& files, std::int64_t vocab_size, Communicator& comm);

}  // namespace zero

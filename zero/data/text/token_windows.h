#pragma once
// TokenWindows: the rows of a stream of tokens. The stream is the files' tokens, joined in the order given. Window w is
// tokens[w*seq_len .. w*seq_len + seq_len]: its first seq_len ids are the input, its last seq_len the targets.
#include <memory>
#include <string>
#include <vector>

#include "zero/data/rows/row_source.h"
#include "zero/data/text/token_file.h"

namespace zero {

class Communicator;

/// What becomes of the tokens after the last whole window: dropped in training, one shorter row in validation.
enum class ShortTail : std::uint8_t { drop, keep };

class TokenWindows : public RowSource {
 public:
  /// InputError when the files together are too short for one row.
  TokenWindows(std::vector<TokenFile> files, std::int64_t seq_len, ShortTail tail);

  std::int64_t size() const override { return rows_; }
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override { return length(index); }
  std::int64_t length(std::int64_t index) const override;
  std::string describe() const override;

 private:
  void read(std::int64_t first, std::int64_t count, std::int64_t* out) const;

  std::vector<TokenFile> files_;
  std::vector<std::int64_t> starts_;  // of each file in the stream, and the stream's end
  std::int64_t seq_len_;
  std::int64_t rows_;
};

/// Looks at every id once, ranks sharing the work. InputError on all ranks that names the first file and offset whose
/// id is not below vocab_size. Collective.
void check_token_ids(const std::vector<TokenFile>& files, std::int64_t vocab_size, Communicator& comm);

}  // namespace zero

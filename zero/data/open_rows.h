#pragma once
// The files of data.train or data.validation as one RowSource.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/data/row_source.h"
#include "zero/data/text_encoder.h"
#include "zero/data/token_file.h"
#include "zero/data/token_windows.h"

namespace zero {

class Communicator;

struct DataOptions {
  std::vector<std::string> files;          // all .txt and .bin
  TokenWidth token_width = TokenWidth::uint16;  // of .bin files
  std::int64_t seq_len = 0;
  ShortTail tail = ShortTail::drop;        // keep: for validation
  std::int64_t vocab_size = 0;             // the model's: every id must be below
  std::string cache_folder;                // of tokenised texts, seen by all ranks
  std::optional<TextEncoder> encoder;      // needed for texts
};

/// Opens, tokenises where needed, and looks at every id once. InputError on all ranks for whatever the user can mend.
/// Collective.
std::shared_ptr<const RowSource> open_rows(const DataOptions& options, Communicator& comm);

}  // namespace zero

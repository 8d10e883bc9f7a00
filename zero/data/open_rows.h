#pragma once
// The files of data.train or data.validation as one RowSource.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/data/examples/conversation_rows.h"
#include "zero/data/rows/row_source.h"
#include "zero/data/text/text_encoder.h"
#include "zero/data/text/token_file.h"
#include "zero/data/text/token_windows.h"

namespace zero {

class Communicator;

struct DataOptions {
  std::vector<std::string> files;               // .txt and .bin mixed, or all .jsonl and .json
  TokenWidth token_width = TokenWidth::uint16;  // of .bin files
  std::int64_t seq_len = 0;
  ShortTail tail = ShortTail::drop;    // keep: for validation
  std::int64_t vocab_size = 0;         // the model's: every id must be below
  std::string cache_folder;            // of tokenised texts and conversations, seen by all ranks
  CoreSet cores;                       // that rank 0 may tokenise on; none: its own
  std::optional<TextEncoder> encoder;  // needed for texts

  // .jsonl and .json
  const Tokenizer* tokenizer = nullptr;  // needed; outlives the call
  EncoderOptions conversations;
  Overlong overlong = Overlong::truncate;
  bool packing = false;
};

/// Opens, tokenises where needed, and looks at every id once. Error on all ranks, with the code of bad input for
/// whatever the user can mend. Collective.
std::shared_ptr<const RowSource> open_rows(const DataOptions& options, Communicator& comm);

/// The first `count` rows of the .jsonl or .json files as training sees them before they are packed; an example that is
/// not trained is shown whole, with a note that says why. Not collective. InputError as from open_rows, or when a file is none of those.
std::vector<EncodedExample> preview_examples(const DataOptions& options, std::int64_t count);

}  // namespace zero

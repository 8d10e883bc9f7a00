#pragma once
// Opens the files of data.train or data.validation as sources of rows.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/data/examples/conversation_rows.h"
#include "zero/data/examples/judged_rows.h"
#include "zero/data/examples/pair_rows.h"
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
  PartialWindow tail = PartialWindow::drop;  // keep: for validation
  RowPurpose purpose = RowPurpose::training;
  std::int64_t vocab_size = 0;         // of the model; every id must be below it
  std::string cache_folder;            // for tokenised texts and conversations; all ranks must see it
  CoreSet cores;                       // for rank 0's tokenising threads; empty: rank 0's own cores
  std::vector<double> weights;         // of the files, each then a source by itself; empty: one source of all
  std::optional<TextEncoder> encoder;  // required for texts

  // For .jsonl and .json:
  const Tokenizer* tokenizer = nullptr;  // required; must outlive the call
  EncoderOptions conversations;
  Overlong overlong = Overlong::truncate;
  bool packing = false;
  ExampleUse use = ExampleUse::single;
  PairForm pairs;
};

/// Opens the files, tokenises them if needed, and checks every id once. Returns one source, or one for each file if
/// they have weights, so that no row has tokens of two files. On failure throws Error on all ranks, with the exit code
/// for bad input if the user can fix the cause. Collective.
std::vector<std::shared_ptr<const RowSource>> open_sources(const DataOptions& options, Communicator& comm);

/// The same for files without weights.
std::shared_ptr<const RowSource> open_rows(const DataOptions& options, Communicator& comm);

/// Returns the first `count` rows of the .jsonl or .json files as trained, before packing. With weights each file has
/// its share of them. A pair counts as two. An untrained example is shown in full, with a note that gives the reason.
/// Throws InputError as open_sources() does, or for another type of file. Not collective.
std::vector<EncodedExample> preview_examples(const DataOptions& options, std::int64_t count);

}  // namespace zero

#include "zero/data/open_rows.h"

#include <filesystem>
#include <utility>

#include "comm/communicator.h"
#include "comm/error.h"
#include "comm/log.h"
#include "zero/data/together.h"
#include "zero/data/token_cache.h"

namespace zero {
namespace {

// Refuses what needs no look into a file, before the first of them is tokenised.
void check(const DataOptions& options) {
  if (options.files.empty()) throw InputError("data.train names no file");
  for (const std::string& file : options.files) {
    const std::string kind = std::filesystem::path(file).extension();
    if (kind != ".txt" && kind != ".bin")
      throw InputError(text(file, ": its kind is not known; text is .txt, token ids .bin, conversations .jsonl"));
    if (!std::filesystem::exists(file)) throw InputError(text(file, " does not exist"));
    if (kind == ".txt" && !options.encoder)
      throw InputError(text(file, " needs a tokenizer: set data.tokenizer, or give a model directory that has tokenizer.model"));
  }
}

TokenFile open_file(const std::string& file, const DataOptions& options, Communicator& comm) {
  if (std::filesystem::path(file).extension() == ".txt") return open_token_cache(file, *options.encoder, options.cache_folder, comm);
  std::optional<TokenFile> ids;
  run_together(comm, [&] { ids.emplace(file, options.token_width); });
  return std::move(*ids);
}

}  // namespace

std::shared_ptr<const RowSource> open_rows(const DataOptions& options, Communicator& comm) {
  run_together(comm, [&] { check(options); });
  std::vector<TokenFile> files;
  for (const std::string& file : options.files) files.push_back(open_file(file, options, comm));
  check_token_ids(files, options.vocab_size, comm);
  return std::make_shared<TokenWindows>(std::move(files), options.seq_len, options.tail);
}

}  // namespace zero

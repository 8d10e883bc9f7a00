#include "zero/data/open_rows.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "comm/communicator.h"
#include "comm/error.h"
#include "comm/log.h"
#include "zero/data/together.h"
#include "zero/data/token_cache.h"

namespace zero {
namespace {

std::string kind_of(const std::string& file) { return std::filesystem::path(file).extension(); }

bool has_conversations(const DataOptions& options) {
  return std::any_of(options.files.begin(), options.files.end(), [](const std::string& file) { return kind_of(file) == ".jsonl"; });
}

// Refuses what needs no look into a file, before the first of them is tokenised.
void check(const DataOptions& options) {
  if (options.files.empty()) throw InputError("data.train names no file");
  const bool conversations = has_conversations(options);
  for (const std::string& file : options.files) {
    const std::string kind = kind_of(file);
    if (kind != ".txt" && kind != ".bin" && kind != ".jsonl")
      throw InputError(text(file, ": its kind is not known; text is .txt, token ids .bin, conversations .jsonl"));
    if (conversations && kind != ".jsonl")
      throw InputError(text(file, ": conversations (.jsonl) and streams of tokens (.txt, .bin) cannot be joined; train on one kind"));
    if (!std::filesystem::exists(file)) throw InputError(text(file, " does not exist"));
    if ((kind == ".txt" && !options.encoder) || (kind == ".jsonl" && !options.tokenizer))
      throw InputError(text(file, " needs a tokenizer: set data.tokenizer, or give a model directory that has tokenizer.model"));
  }
}

// Every rank reads and encodes the examples itself.
std::shared_ptr<const RowSource> open_conversations(const DataOptions& options, Communicator& comm) {
  std::shared_ptr<const RowSource> rows;
  run_together(comm, [&] {
    const ConversationEncoder encoder(*options.tokenizer, options.conversations);
    rows = std::make_shared<ConversationRows>(
        options.files, encoder, ConversationRowsOptions{options.seq_len, options.overlong, options.packing, options.vocab_size});
  });
  return rows;
}

TokenFile open_file(const std::string& file, const DataOptions& options, Communicator& comm) {
  if (kind_of(file) == ".txt") return open_token_cache(file, *options.encoder, options.cache_folder, comm);
  std::optional<TokenFile> ids;
  run_together(comm, [&] { ids.emplace(file, options.token_width); });
  return std::move(*ids);
}

}  // namespace

std::shared_ptr<const RowSource> open_rows(const DataOptions& options, Communicator& comm) {
  run_together(comm, [&] { check(options); });
  if (has_conversations(options)) return open_conversations(options, comm);
  std::vector<TokenFile> files;
  for (const std::string& file : options.files) files.push_back(open_file(file, options, comm));
  check_token_ids(files, options.vocab_size, comm);
  return std::make_shared<TokenWindows>(std::move(files), options.seq_len, options.tail);
}

std::vector<EncodedExample> preview_examples(const DataOptions& options, std::int64_t count) {
  check(options);
  if (!has_conversations(options)) throw InputError("a preview shows examples of .jsonl files; a stream of tokens has none");
  const ConversationEncoder encoder(*options.tokenizer, options.conversations);
  const auto most = static_cast<std::size_t>(options.seq_len) + 1;
  std::vector<EncodedExample> examples;
  for (const std::string& file : options.files)
    read_examples(file, [&](const Example& example) {
      if (static_cast<std::int64_t>(examples.size()) >= count) return false;
      examples.push_back(encoder.encode(example));
      if (options.overlong == Overlong::drop || examples.back().ids.size() <= most) return true;
      examples.back().ids.resize(most);
      examples.back().trained.resize(most);
      return true;
    });
  return examples;
}

}  // namespace zero

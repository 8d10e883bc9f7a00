#include "zero/data/open_rows.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "zero/data/examples/example_file.h"
#include "zero/data/rows/source_turns.h"
#include "zero/data/text/text_cutter.h"

namespace zero {
namespace {

constexpr std::int64_t looked_at = 1000;  // examples of a file that are searched for ignored keys

std::string kind_of(const std::string& file) { return std::filesystem::path(file).extension(); }
bool is_examples(const std::string& file) { return kind_of(file) == ".jsonl" || kind_of(file) == ".json"; }
bool has_conversations(const DataOptions& options) {
  return std::any_of(options.files.begin(), options.files.end(), is_examples);
}

// Checks everything that can be checked without reading files, before the first file is tokenised.
void check(const DataOptions& options) {
  if (options.files.empty()) throw InputError("data.train names no file");
  const bool conversations = has_conversations(options);
  for (const std::string& file : options.files) {
    const std::string kind = kind_of(file);
    if (kind != ".txt" && kind != ".bin" && !is_examples(file))
      throw InputError(
          text(file, ": its kind is not known; text is .txt, token ids .bin, conversations .jsonl or .json"));
    if (options.use != ExampleUse::single && !is_examples(file))
      throw InputError(text(file,
                            ": [preference] trains on answers, in .jsonl or .json files: name such files, or "
                            "leave [preference] out"));
    if (conversations && !is_examples(file))
      throw InputError(text(
          file,
          ": conversations (.jsonl, .json) and streams of tokens (.txt, .bin) cannot be joined; train on one kind"));
    if (!is_there(file)) throw InputError(text(file, " does not exist"));
    if ((kind == ".txt" && !options.encoder) || (is_examples(file) && !options.tokenizer))
      throw InputError(text(
          file,
          " needs a tokenizer: set data.tokenizer, or give a model directory that has a tokenizer.json or tokenizer.model"));
  }
}

std::vector<Example> sequences_of(ExampleUse use, std::string_view json, const std::string& place,
                                  std::set<std::string>* ignored) {
  if (use == ExampleUse::single) return one_sequence(json, place, ignored);
  std::vector<Example> sequences;
  if (use == ExampleUse::pair) {
    PreferencePair pair = parse_pair(json, place, ignored);
    if (pair.are_equal) return {};
    sequences = {std::move(pair.chosen), std::move(pair.rejected)};
  } else {
    for (JudgedAnswer& answer : parse_judged(json, place, ignored)) sequences.push_back(std::move(answer.example));
  }
  return sequences;
}

void warn_of_ignored_keys(const DataOptions& options, const ConversationEncoder& encoder) {
  const auto reads = [&](const std::string& key, const Example& example) { return encoder.reads(key, example); };
  const auto parse = [&](std::string_view json, const std::string& place, std::set<std::string>* ignored) {
    return sequences_of(options.use, json, place, ignored);
  };
  for (const std::string& file : options.files) {
    std::string names;
    for (const std::string& key : ignored_keys(file, looked_at, reads, parse))
      names += (names.empty() ? "" : ", ") + key;
    if (!names.empty()) log_warning(file, ": keys that are not read: ", names);
  }
}

using Sources = std::vector<std::shared_ptr<const RowSource>>;

/// Calls `make` with all files, or with each file alone if they have weights.
template <class File, class Make>
Sources sources_of(std::vector<File> files, const DataOptions& options, const Make& make) {
  Sources sources;
  if (options.weights.empty()) {
    sources.push_back(make(std::move(files)));
    return sources;
  }
  for (File& file : files) {
    std::vector<File> alone;
    alone.push_back(std::move(file));
    sources.push_back(make(std::move(alone)));
  }
  return sources;
}

std::shared_ptr<const RowSource> rows_of(std::vector<CachedTokens> files, const ConversationRowsOptions& kept,
                                         PairForm pairs) {
  if (kept.use == ExampleUse::pair) return std::make_shared<PairRows>(std::move(files), kept, pairs);
  if (kept.use == ExampleUse::judged) return std::make_shared<JudgedRows>(std::move(files), kept);
  return std::make_shared<ConversationRows>(std::move(files), kept);
}

Sources open_conversations(const DataOptions& options, Communicator& comm) {
  const ConversationRowsOptions kept{options.seq_len,    options.overlong, options.packing,
                                     options.vocab_size, options.use,      options.purpose};
  std::vector<CacheRecipe> recipes;
  all_or_none(comm, [&] {
    const auto encoder = std::make_shared<ConversationEncoder>(*options.tokenizer, options.conversations);
    const Fingerprint encoding = fingerprint_of(*options.tokenizer, options.conversations);
    if (comm.rank() == 0) warn_of_ignored_keys(options, *encoder);
    for (const std::string& file : options.files) recipes.push_back(example_recipe(file, encoder, encoding, kept));
  });
  std::vector<CachedTokens> files;
  for (const CacheRecipe& recipe : recipes)
    files.push_back(open_token_cache(recipe, options.cache_folder, options.cores, comm));
  Sources sources;
  all_or_none(comm, [&] {
    sources = sources_of(std::move(files), options,
                         [&](std::vector<CachedTokens> some) { return rows_of(std::move(some), kept, options.pairs); });
  });
  return sources;
}

TokenFile open_file(const std::string& file, const DataOptions& options, Communicator& comm) {
  if (kind_of(file) == ".txt")
    return open_token_cache(text_recipe(file, *options.encoder), options.cache_folder, options.cores, comm).ids;
  std::optional<TokenFile> ids;
  all_or_none(comm, [&] { ids.emplace(file, options.token_width); });
  return std::move(*ids);
}

}  // namespace

std::vector<std::shared_ptr<const RowSource>> open_sources(const DataOptions& options, Communicator& comm) {
  all_or_none(comm, [&] { check(options); });
  if (has_conversations(options)) return open_conversations(options, comm);
  std::vector<TokenFile> files;
  for (const std::string& file : options.files) files.push_back(open_file(file, options, comm));
  check_token_ids(files, options.vocab_size, comm);
  return sources_of(std::move(files), options, [&](std::vector<TokenFile> some) {
    return std::make_shared<TokenWindows>(std::move(some), options.seq_len, options.tail);
  });
}

std::shared_ptr<const RowSource> open_rows(const DataOptions& options, Communicator& comm) {
  ZERO_CHECK(options.weights.empty(), "files with weights are several sources");
  return open_sources(options, comm).front();
}

namespace {

/// The rows of one example as trained, or the whole example with the reason why nothing of it is.
std::vector<EncodedExample> shown_rows(EncodedExample encoded, const DataOptions& options) {
  ExampleCounts counts;
  std::vector<EncodedExample> windows = trained_windows(encoded, options.seq_len, options.overlong, counts);
  const std::string note = note_of(counts, encoded.ids.size(), options.seq_len);
  if (windows.empty()) windows.push_back(std::move(encoded));
  for (EncodedExample& window : windows) window.note = note;
  return windows;
}

std::vector<EncodedExample> shown_rows(const EncodedPair& encoded, const DataOptions& options) {
  ExampleCounts counts;
  const auto trained = trained_pair(encoded, options.seq_len, options.overlong, counts);
  const std::size_t tokens = std::max(encoded.chosen.ids.size(), encoded.rejected.ids.size());
  const EncodedPair& shown = trained ? *trained : encoded;
  std::vector<EncodedExample> both{shown.chosen};
  if (!shown.are_equal) both.push_back(shown.rejected);
  for (EncodedExample& one : both) one.note = note_of(counts, tokens, options.seq_len);
  return both;
}

std::vector<EncodedExample> shown_rows(std::string_view json, const std::string& place,
                                       const ConversationEncoder& encoder, const DataOptions& options) {
  if (options.use == ExampleUse::single) return shown_rows(encoder.encode(parse_example(json, place)), options);
  if (options.use == ExampleUse::pair) return shown_rows(encode_pair(encoder, parse_pair(json, place)), options);
  std::vector<EncodedExample> rows;
  for (const JudgedAnswer& answer : parse_judged(json, place))
    for (EncodedExample& row : shown_rows(encode_judged(encoder, answer), options)) {
      row.note = (answer.is_desirable ? "desirable" : "not desirable") + (row.note.empty() ? "" : "; " + row.note);
      rows.push_back(std::move(row));
    }
  return rows;
}

/// The first rows of files.
std::vector<EncodedExample> first_rows(const std::vector<std::string>& files, std::int64_t count,
                                       const ConversationEncoder& encoder, const DataOptions& options) {
  std::vector<EncodedExample> examples;
  for (const std::string& file : files)
    read_example_texts(file, [&](std::string_view json, const std::string& place) {
      if (std::ssize(examples) >= count) return false;
      const std::vector<EncodedExample> rows = shown_rows(json, place, encoder, options);
      for (const EncodedExample& row : rows)
        if (std::ssize(examples) < count) examples.push_back(row);
      return true;
    });
  return examples;
}

}  // namespace

std::vector<EncodedExample> preview_examples(const DataOptions& options, std::int64_t count) {
  check(options);
  if (!has_conversations(options))
    throw InputError("a preview shows examples of .jsonl and .json files; a stream of tokens has none");
  const ConversationEncoder encoder(*options.tokenizer, options.conversations);
  if (options.weights.empty()) return first_rows(options.files, count, encoder, options);
  const SourceTurns turns(options.weights);
  std::vector<EncodedExample> examples;
  for (std::size_t i = 0; i < options.files.size(); ++i)
    for (EncodedExample& row : first_rows({options.files[i]}, turns.given(i, count), encoder, options))
      examples.push_back(std::move(row));
  return examples;
}

}  // namespace zero

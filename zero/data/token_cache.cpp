#include "zero/data/token_cache.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/error.h"
#include "comm/log.h"
#include "models/file.h"
#include "zero/data/text_cutter.h"
#include "zero/data/together.h"

namespace zero {
namespace {

constexpr std::uint32_t format_version = 1;

struct Header {
  char magic[8] = {'Z', 'E', 'R', 'O', 'T', 'O', 'K', 'S'};
  std::uint32_t version = format_version;
  std::uint32_t width = 0;
  std::uint64_t tokens = 0;
  Fingerprint source{}, tokenizer{}, rule{};
  std::uint64_t reserved = 0;
};
static_assert(sizeof(Header) == 128);

Header expected_header(const std::string& path, const TextEncoder& encoder) {
  Header header;
  header.width = static_cast<std::uint32_t>(narrowest_token_width(encoder.vocab_size));
  header.source = fingerprint_of_file(path);
  header.tokenizer = encoder.fingerprint;
  header.rule = fingerprint_of(text(text_rule, "; BOS ", encoder.bos, ", EOS ", encoder.eos));
  return header;
}

// Whether the cache is whole and was made from what the header says; the number of tokens is the cache's own.
bool fits(const std::string& cache, Header expected) {
  if (!std::filesystem::is_regular_file(cache)) return false;
  const File file = File::open(cache);
  if (file.size() < static_cast<std::int64_t>(sizeof(Header))) return false;
  Header found;
  file.read_at(&found, sizeof found, 0);
  expected.tokens = found.tokens;
  const auto bytes = static_cast<std::uint64_t>(file.size()) - sizeof(Header);
  return std::memcmp(&found, &expected, sizeof found) == 0 && found.tokens == bytes / found.width && bytes % found.width == 0;
}

// Ids in the width that the cache stores them in.
class NarrowIds {
 public:
  NarrowIds(std::uint32_t width, std::int64_t vocab_size) : width_(width), vocab_size_(vocab_size) {}

  void add(const std::vector<int>& ids) {
    const std::size_t start = bytes_.size();
    bytes_.resize(start + ids.size() * width_);
    char* to = bytes_.data() + start;
    for (const int id : ids) {
      ZERO_CHECK(id >= 0 && id < vocab_size_, text("the tokenizer gave id ", id, " of ", vocab_size_));
      const auto wide = static_cast<std::uint32_t>(id);
      std::memcpy(to, &wide, width_);  // little-endian: the low bytes come first
      to += width_;
    }
  }
  std::uint64_t size() const { return bytes_.size() / width_; }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::uint32_t width_;
  std::int64_t vocab_size_;
  std::vector<char> bytes_;
};

void write_cache(const std::string& path, const TextEncoder& encoder, const std::string& cache, Header header, const Heartbeat& beat) {
  const auto start = std::chrono::steady_clock::now();
  NarrowIds ids(header.width, encoder.vocab_size);
  encode_text_file(path, encoder, [&](const std::vector<int>& piece) { ids.add(piece); beat(); });
  header.tokens = ids.size();
  std::filesystem::create_directories(std::filesystem::path(cache).parent_path());
  NewFile file(cache);
  file.append(&header, sizeof header);
  file.append(ids.bytes().data(), static_cast<std::int64_t>(ids.bytes().size()));
  file.publish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  log_info("tokenised ", path, ": ", header.tokens, " tokens in ", seconds.count(), " s, cached in ", cache);
}

}  // namespace

std::string token_cache_path(const std::string& path, const std::string& folder) {
  const auto whole = std::filesystem::weakly_canonical(path);
  const std::string mark = hex(fingerprint_of(whole.string()), 12);
  return (std::filesystem::path(folder) / text(whole.filename().string(), ".", mark, ".tokens")).string();
}

TokenFile open_token_cache(const std::string& path, const TextEncoder& encoder, const std::string& folder, Communicator& comm) {
  const std::string cache = token_cache_path(path, folder);
  run_on_first(comm, [&](const Heartbeat& beat) {
    const Header expected = expected_header(path, encoder);
    if (!fits(cache, expected)) write_cache(path, encoder, cache, expected, beat);
  });
  std::optional<TokenFile> file;
  run_together(comm, [&] {
    const auto type = static_cast<TokenWidth>(narrowest_token_width(encoder.vocab_size));
    if (!std::filesystem::exists(cache))
      throw Error(text("rank ", comm.rank(), " does not see ", cache, ", which rank 0 wrote: it must lie on a file system that all nodes share"));
    file.emplace(cache, type, static_cast<std::int64_t>(sizeof(Header)), path);
  });
  return std::move(*file);
}

}  // namespace zero

#include "zero/data/text/token_cache_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/files/new_file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/ordered_work.h"

namespace zero {
namespace {

struct Chunk {
  std::uint64_t source_bytes = 0, ids = 0, notes = 0;
  std::uint64_t checksum = 0;  // of the ids
  Fingerprint source{};
};
static_assert(sizeof(Chunk) == 64);

std::uint64_t frame_checksum(TokenCacheHeader header, std::string_view tail) {
  header.checksum = 0;
  std::string all(reinterpret_cast<const char*>(&header), sizeof header);
  return checksum_of(all.append(tail));
}

template <class Item>
void append_bytes(std::string& to, const std::vector<Item>& items) {
  to.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(Item));
}

// The ids in their stored width. Little-endian: the low bytes come first.
std::string narrowed(const std::vector<std::uint32_t>& ids, std::uint32_t width) {
  std::string bytes(ids.size() * width, '\0');
  for (std::size_t i = 0; i < ids.size(); ++i) std::memcpy(bytes.data() + i * width, &ids[i], width);
  return bytes;
}

// The chunks of a source, front to back.
class ChunkReader {
 public:
  explicit ChunkReader(const CacheRecipe& recipe) : recipe_(recipe), file_(File::open(recipe.source)) {
    if (file_.size() == 0) throw InputError(text(recipe.source, " is empty: there is no text to train on"));
  }
  const File& file() const { return file_; }

  std::optional<SourceChunk> next() {
    if (ended_) return std::nullopt;
    std::size_t bytes = 0;
    while (bytes == 0) {
      read_more();
      bytes = offset_ < file_.size() ? recipe_.cut(held_, start_) : held_.size();
    }
    SourceChunk chunk{start_, "", false};
    chunk.last = ended_ = offset_ == file_.size() && bytes == held_.size();
    chunk.bytes = held_.substr(0, bytes);
    held_.erase(0, bytes);
    start_.offset += static_cast<std::int64_t>(bytes);
    start_.number += recipe_.count ? recipe_.count(chunk) : std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n');
    start_.first = false;
    return chunk;
  }

 private:
  void read_more() {
    const std::size_t before = held_.size();
    if (static_cast<std::int64_t>(before) >= recipe_.most_bytes)
      throw InputError(text(recipe_.source, ":", start_.number, ": ", recipe_.too_long));
    const std::int64_t count = std::min(recipe_.chunk_bytes, file_.size() - offset_);
    held_.resize(before + static_cast<std::size_t>(count));
    file_.read_at(held_.data() + before, count, offset_);
    offset_ += count;
  }

  const CacheRecipe& recipe_;
  File file_;
  std::string held_;  // bytes read that are not in a chunk yet
  std::int64_t offset_ = 0;
  ChunkStart start_{.first = true};
  bool ended_ = false;
};

struct MadeChunk {
  Chunk entry;
  std::string ids;
  std::vector<std::uint32_t> notes;
};

std::string read_tail(const File& file, const TokenCacheHeader& header) {
  std::string tail(header.notes * sizeof(std::uint32_t) + header.chunks * sizeof(Chunk), '\0');
  file.read_at(tail.data(), static_cast<std::int64_t>(tail.size()),
               static_cast<std::int64_t>(sizeof header + header.ids * header.width));
  return tail;
}

std::vector<Chunk> chunks_of(const std::string& tail, const TokenCacheHeader& header) {
  std::vector<Chunk> chunks(header.chunks);
  std::memcpy(chunks.data(), tail.data() + header.notes * sizeof(std::uint32_t), chunks.size() * sizeof(Chunk));
  return chunks;
}

bool sizes_fit(const TokenCacheHeader& header, std::int64_t file_bytes) {
  constexpr std::uint64_t most = std::uint64_t{1} << 56;  // no product below overflows
  const TokenCacheHeader ours;
  if (std::memcmp(header.magic, ours.magic, sizeof ours.magic) != 0 || header.version != ours.version) return false;
  if ((header.width != 2 && header.width != 4) || header.ids > most || header.notes > most || header.chunks > most)
    return false;
  return sizeof header + header.ids * header.width + header.notes * 4 + header.chunks * sizeof(Chunk) ==
         static_cast<std::uint64_t>(file_bytes);
}

// A header with the matching notes and table that follow the ids.
struct Frame {
  TokenCacheHeader header;
  std::string tail;
};

std::optional<Frame> read_frame(const File& file) {
  Frame frame;
  if (file.size() < static_cast<std::int64_t>(sizeof frame.header)) return std::nullopt;
  file.read_at(&frame.header, sizeof frame.header, 0);
  if (!sizes_fit(frame.header, file.size())) return std::nullopt;
  frame.tail = read_tail(file, frame.header);
  if (frame_checksum(frame.header, frame.tail) != frame.header.checksum) return std::nullopt;
  return frame;
}

}  // namespace

TokenCacheHeader write_token_cache(const std::string& path, const CacheRecipe& recipe, const CoreSet& cores,
                                   const CacheProgress& progress) {
  ChunkReader reader(recipe);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  NewFile file(path, reader.file().mode());
  TokenCacheHeader header;
  header.width = static_cast<std::uint32_t>(recipe.width);
  header.rule = recipe.rule;
  file.append(&header, sizeof header);
  std::vector<Chunk> table;
  std::vector<std::uint32_t> notes;
  work_in_order(
      cores, [&] { return reader.next(); },
      [&](SourceChunk& chunk) {
        EncodedChunk encoded = recipe.encode(chunk);
        MadeChunk made{{chunk.bytes.size(), encoded.ids.size(), encoded.notes.size()},
                       narrowed(encoded.ids, header.width),
                       std::move(encoded.notes)};
        made.entry.checksum = checksum_of(made.ids);
        made.entry.source = fingerprint_of(chunk.bytes);
        return made;
      },
      [&](MadeChunk made) {
        file.append(made.ids.data(), static_cast<std::int64_t>(made.ids.size()));
        notes.insert(notes.end(), made.notes.begin(), made.notes.end());
        table.push_back(made.entry);
        header.ids += made.entry.ids;
        header.source_bytes += made.entry.source_bytes;
        if (progress) progress(static_cast<std::int64_t>(header.source_bytes), reader.file().size());
      });
  if (reader.file().changed())
    throw InputError(text(recipe.source, ": was changed while it was read: start again when nothing writes to it"));
  header.notes = notes.size();
  header.chunks = table.size();
  std::string tail;
  append_bytes(tail, notes);
  append_bytes(tail, table);
  header.checksum = frame_checksum(header, tail);
  file.append(tail.data(), static_cast<std::int64_t>(tail.size()));
  file.replace(&header, sizeof header, 0);
  file.publish();
  return header;
}

std::optional<TokenCacheHeader> read_token_cache_header(const std::string& path) {
  if (!is_file(path)) return std::nullopt;
  const std::optional<Frame> frame = read_frame(File::open(path));
  return frame ? std::optional(frame->header) : std::nullopt;
}

std::optional<TokenCacheHeader> verify_token_cache(const std::string& path, const CacheRecipe& recipe,
                                                   const CoreSet& cores) {
  const File source = File::open(recipe.source);
  if (!is_file(path)) return std::nullopt;
  const File cache = File::open(path);
  const std::optional<Frame> frame = read_frame(cache);
  const auto damaged = [&] { log_warning(path, " is damaged: it is made anew"); };
  if (!frame) {
    damaged();
    return std::nullopt;
  }
  const TokenCacheHeader& header = frame->header;
  if (header.rule != recipe.rule || header.width != static_cast<std::uint32_t>(recipe.width)) return std::nullopt;
  if (header.source_bytes != static_cast<std::uint64_t>(source.size())) return std::nullopt;

  struct Job {
    Chunk chunk;
    std::int64_t ids_at = 0, source_at = 0;
  };
  struct Found {
    bool same_source = false, same_ids = false;
  };
  const std::vector<Chunk> chunks = chunks_of(frame->tail, header);
  bool same_source = true, same_ids = true;
  std::size_t number = 0;
  Job job{{}, sizeof header, 0};
  work_in_order(
      cores,
      [&]() -> std::optional<Job> {
        if (number == chunks.size() || !same_source || !same_ids) return std::nullopt;
        job.ids_at += static_cast<std::int64_t>(job.chunk.ids) * header.width;
        job.source_at += static_cast<std::int64_t>(job.chunk.source_bytes);
        job.chunk = chunks[number++];
        return job;
      },
      [&](const Job& one) {
        std::string bytes(one.chunk.source_bytes, '\0');
        source.read_at(bytes.data(), static_cast<std::int64_t>(bytes.size()), one.source_at);
        Found found;
        found.same_source = fingerprint_of(bytes) == one.chunk.source;
        bytes.resize(one.chunk.ids * header.width);
        cache.read_at(bytes.data(), static_cast<std::int64_t>(bytes.size()), one.ids_at);
        found.same_ids = checksum_of(std::move(bytes)) == one.chunk.checksum;
        return found;
      },
      [&](const Found& found) {
        same_source = same_source && found.same_source;
        same_ids = same_ids && found.same_ids;
      });
  if (!same_ids) damaged();
  return same_source && same_ids ? std::optional(header) : std::nullopt;
}

std::vector<std::uint32_t> read_token_cache_notes(const std::string& path, const TokenCacheHeader& header) {
  std::vector<std::uint32_t> notes(header.notes);
  File::open(path).read_at(notes.data(), static_cast<std::int64_t>(notes.size() * sizeof notes[0]),
                           static_cast<std::int64_t>(sizeof header + header.ids * header.width));
  return notes;
}

}  // namespace zero

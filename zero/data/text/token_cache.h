#pragma once
// The token cache: the token ids of a file's text. Rank 0 makes it once, on all cores of its node. All ranks read it.
// Later runs reuse it as long as the file and the encoding rule stay the same.
//
// A file is cut into chunks at positions that the encoding rule chooses. A cache is little-endian and consists of
// - a header of 128 bytes, with a checksum of itself, the notes and the table;
// - the ids;
// - 32-bit notes that the encoding rule adds to the ids;
// - a table with an entry per chunk: bytes of the source, numbers of ids and notes, a checksum of the ids, and the
//   SHA-256 of the source's bytes.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core_share.h"
#include "base/fingerprint.h"
#include "zero/data/text/token_file.h"

namespace zero {

class Communicator;

/// The start of a chunk in the source.
struct ChunkStart {
  std::int64_t offset = 0;  // byte position in the file
  std::int64_t number = 1;  // number of the chunk's first line or row
  bool first = false;
};

struct SourceChunk : ChunkStart {
  std::string bytes;
  bool last = false;
};

struct EncodedChunk {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> notes;
};

/// The source of a cache, and the rule that makes its ids.
struct CacheRecipe {
  std::string source;  // path of the file
  Fingerprint rule{};  // fingerprint of all that the ids depend on, except the source
  TokenWidth width = TokenWidth::uint32;
  /// Returns the length of the next chunk in `held`; 0 requests more bytes. Not called at the end of a file, where all
  /// remaining bytes are the last chunk.
  std::function<std::size_t(std::string_view held, const ChunkStart& start)> cut;
  /// Counts the lines of a chunk, or the rows if messages number those; empty: lines.
  std::function<std::int64_t(const SourceChunk&)> count = {};
  /// Thread-safe.
  std::function<EncodedChunk(const SourceChunk&)> encode;
  std::int64_t chunk_bytes = 1 << 20;  // approximate
  std::int64_t most_bytes = 64 << 20;  // a chunk grows up to this size if no cut is possible
  std::string too_long;                // the error message for a longer chunk, with the remedy
};

struct CachedTokens {
  TokenFile ids;
  std::vector<std::uint32_t> notes;  // of all chunks, concatenated
};

/// Returns the ids of a file, from its cache in `folder`, which all ranks must see. Rank 0 verifies every byte of the
/// cache against source and rule, and rebuilds the cache on `cores` if it differs. The other ranks wait. Users who may
/// read the source may read the cache. Throws on all ranks: InputError for a problem with the source, Error if the
/// folder cannot be written. Collective.
CachedTokens open_token_cache(const CacheRecipe& recipe, const std::string& folder, const CoreSet& cores,
                              Communicator& comm);

/// Returns the path of that cache, made of the source's file name, a hash of its path and a hash of the rule.
std::string token_cache_path(const CacheRecipe& recipe, const std::string& folder);

}  // namespace zero

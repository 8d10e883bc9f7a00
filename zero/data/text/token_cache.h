#pragma once
// The token cache: what a file's text became as token ids, made once, by rank 0 on all cores of its node, and read by
// all ranks, again in later runs as long as the file and the rule are the same.
//
// A file is cut into chunks, at places that the rule chooses. Layout of a cache, little-endian: a header of 128 bytes;
// the ids; 32-bit notes that a rule keeps beside them; a table with an entry for each chunk: how many bytes of the
// source and how many ids and notes it is, a checksum of the ids, and SHA-256 of the source's bytes. A checksum in the
// header covers it, the notes and the table.
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

/// Where a chunk of the source begins.
struct ChunkStart {
  std::int64_t offset = 0;  // in the file, of its first byte
  std::int64_t number = 1;  // of its first line, or of what the recipe counts
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

/// What a cache is made of, and how.
struct CacheRecipe {
  std::string source;  // path of the file
  Fingerprint rule{};  // of all that the ids depend on beside the source
  TokenWidth width = TokenWidth::uint32;
  /// How many of the bytes held may be a chunk; 0: more must be read. All of them where a file ends.
  std::function<std::size_t(std::string_view held, const ChunkStart& start)> cut;
  /// What messages count of a chunk; empty: lines.
  std::function<std::int64_t(const SourceChunk&)> count = {};
  /// Called by several threads.
  std::function<EncodedChunk(const SourceChunk&)> encode;
  std::int64_t chunk_bytes = 1 << 20;  // about
  std::int64_t most_bytes = 64 << 20;  // a chunk may grow to where no cut is found
  std::string too_long;                // what is wrong then, and the remedy
};

struct CachedTokens {
  TokenFile ids;
  std::vector<std::uint32_t> notes;  // of all chunks, one after the other
};

/// The ids of a file, from its cache in `folder` (made if need be), which all ranks must see. Rank 0 checks the cache
/// against source and rule, to the last byte, and makes it anew where it does not fit, on `cores`; the others wait. The
/// cache may be read by those who may read the source. Collective; every error is thrown on all ranks: InputError for
/// the source, Error where the folder cannot be written.
CachedTokens open_token_cache(const CacheRecipe& recipe, const std::string& folder, const CoreSet& cores,
                              Communicator& comm);

/// Where that cache lies: the source's file name, a hash of its whole path and one of the rule.
std::string token_cache_path(const CacheRecipe& recipe, const std::string& folder);

}  // namespace zero

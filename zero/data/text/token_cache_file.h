#pragma once
// The file of a token cache: how it is written, and how it is found to fit. Its layout is told in token_cache.h.
#include <functional>
#include <optional>
#include <string>

#include "zero/data/text/token_cache.h"

namespace zero {

struct TokenCacheHeader {
  char magic[8] = {'Z', 'E', 'R', 'O', 'T', 'O', 'K', 'S'};
  std::uint32_t version = 3;
  std::uint32_t width = 0;  // of an id, in bytes
  std::uint64_t ids = 0;
  std::uint64_t notes = 0;
  std::uint64_t chunks = 0;
  std::uint64_t source_bytes = 0;
  Fingerprint rule{};
  std::uint64_t checksum = 0;  // of the header with 0 here, the notes and the table
  std::uint64_t reserved[5] = {};
};
static_assert(sizeof(TokenCacheHeader) == 128);

/// Of the source: how many bytes are done, and how many there are.
using CacheProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Makes the cache, telling `progress` after each chunk. Returns its header.
TokenCacheHeader write_token_cache(const std::string& path, const CacheRecipe& recipe, const CoreSet& cores,
                                   const CacheProgress& progress = {});

/// The header of a cache whose parts fit together; none where the file is missing, foreign or cut. Reads no ids.
std::optional<TokenCacheHeader> read_token_cache_header(const std::string& path);

/// The header if the cache was made of this source by this rule and every byte of it is as written. A cache that is
/// damaged is told of by a warning.
std::optional<TokenCacheHeader> verify_token_cache(const std::string& path, const CacheRecipe& recipe,
                                                   const CoreSet& cores);

std::vector<std::uint32_t> read_token_cache_notes(const std::string& path, const TokenCacheHeader& header);

}  // namespace zero

#pragma once
// The file of a token cache: writes and verifies it. token_cache.h describes the layout.
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
  std::uint64_t checksum = 0;  // of the header with 0 in this field, the notes and the table
  std::uint64_t reserved[5] = {};
};
static_assert(sizeof(TokenCacheHeader) == 128);

/// `done`: the bytes of the source that are encoded; `all`: all its bytes.
using CacheProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Makes the cache and calls `progress` after each chunk. Returns the header.
TokenCacheHeader write_token_cache(const std::string& path, const CacheRecipe& recipe, const CoreSet& cores,
                                   const CacheProgress& progress = {});

/// Returns the header of a consistent cache; none if the file is missing, truncated or not a cache. Reads no ids.
std::optional<TokenCacheHeader> read_token_cache_header(const std::string& path);

/// Returns the header if the cache was made from this source by this rule and every byte is as written. Logs a warning
/// if a cache is damaged.
std::optional<TokenCacheHeader> verify_token_cache(const std::string& path, const CacheRecipe& recipe,
                                                   const CoreSet& cores);

std::vector<std::uint32_t> read_token_cache_notes(const std::string& path, const TokenCacheHeader& header);

}  // namespace zero

#include "zero/data/text/token_cache.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <thread>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "base/utf8.h"
#include "comm/agreement/agreement.h"
#include "comm/communicator.h"
#include "comm/object_collectives.h"
#include "zero/data/text/token_cache_file.h"

namespace zero {
namespace {

constexpr auto patience = std::chrono::seconds(5);  // network file systems may show a new file late

// Returns the start of a file's name, to make the cache's name readable. The unique part follows, and file names are
// limited to 255 bytes.
std::string beginning_of(std::string name) {
  constexpr std::size_t most = 150;
  if (name.size() <= most) return name;
  std::size_t bytes = most;
  while (bytes > 0 && utf8_continues(name[bytes])) --bytes;
  return name.substr(0, bytes > 0 ? bytes : most);
}

/// Progress lines for a waiting user: the first after ten seconds, then one per minute.
class CacheLines {
 public:
  explicit CacheLines(const std::string& source) : source_(source) {}

  void tell(std::int64_t done, std::int64_t all) {
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::minutes(1);
    const double share = static_cast<double>(done) / static_cast<double>(all);
    const double left = std::chrono::duration<double>(now - start_).count() * (1 / share - 1);
    log_info("tokenising ", source_, ": ", std::fixed, std::setprecision(0), 100 * share, " %, about ", left,
             " s left");
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::string& source_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(10);
};

// If the source is invalid, nothing is left behind, not even the folder.
TokenCacheHeader write_into_folder(const std::string& path, const CacheRecipe& recipe, const CoreSet& cores) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool there = is_there(folder);
  CacheLines lines(recipe.source);
  try {
    return write_token_cache(path, recipe, cores, [&](std::int64_t done, std::int64_t all) { lines.tell(done, all); });
  } catch (...) {
    std::error_code none;
    if (!there) std::filesystem::remove(folder, none);
    throw;
  }
}

std::int64_t made_or_found(const CacheRecipe& recipe, const std::string& path, const CoreSet& cores) {
  if (const auto header = verify_token_cache(path, recipe, cores)) return static_cast<std::int64_t>(header->checksum);
  const auto start = std::chrono::steady_clock::now();
  const TokenCacheHeader header = write_into_folder(path, recipe, cores);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  log_info("tokenised ", recipe.source, ": ", counted(header.ids, "token"), " in ", std::fixed, std::setprecision(2),
           seconds.count(), " s, cached in ", path);
  return static_cast<std::int64_t>(header.checksum);
}

// Returns the header of rank 0's cache; none if this rank does not see the cache.
std::optional<TokenCacheHeader> seen(const std::string& path, std::int64_t checksum) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto header = read_token_cache_header(path);
    if (header && static_cast<std::int64_t>(header->checksum) == checksum) return header;
    if (std::chrono::steady_clock::now() > end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::string token_cache_path(const CacheRecipe& recipe, const std::string& folder) {
  const std::filesystem::path whole = real_path(recipe.source);
  return (std::filesystem::path(folder) / text(beginning_of(whole.filename().string()), ".",
                                               hex(fingerprint_of(whole.string()), 12), ".", hex(recipe.rule, 12),
                                               ".tokens"))
      .string();
}

CachedTokens open_token_cache(const CacheRecipe& recipe, const std::string& folder, const CoreSet& cores,
                              Communicator& comm) {
  const std::string path = token_cache_path(recipe, folder);
  std::int64_t checksum = 0;
  on_first(comm, [&] { checksum = made_or_found(recipe, path, cores.any() ? cores : own_cores()); });
  checksum = broadcast_number(comm, checksum, 0);
  std::optional<CachedTokens> cached;
  all_or_none(comm, [&] {
    const auto header = seen(path, checksum);
    if (!header)
      throw InputError(
          text(path, " differs from what rank 0 wrote: job.output_dir must lie on a file system that all nodes share"));
    cached.emplace(
        CachedTokens{TokenFile(path, recipe.width, TokenSection{sizeof *header, static_cast<std::int64_t>(header->ids)},
                               recipe.source),
                     read_token_cache_notes(path, *header)});
  });
  return std::move(*cached);
}

}  // namespace zero

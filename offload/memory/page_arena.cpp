#include "offload/memory/page_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::size_t smallest_remainder = 4096;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::size_t default_reserve() {
  const auto memory =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return std::max(2 * memory, std::size_t{64} << 30);
}

}  // namespace

PageArena::PageArena(const PageArenaOptions& options) : options_(options) {
  std::size_t bytes = round_up(options.reserve_bytes ? options.reserve_bytes : default_reserve(), page_bytes);
  void* map = MAP_FAILED;
  // If address space is limited (ulimit -v), reserve less.
  for (; bytes >= page_bytes; bytes = round_up(bytes / 2, page_bytes)) {
    map =
        ::mmap(nullptr, bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map != MAP_FAILED || bytes == page_bytes) break;
  }
  if (map == MAP_FAILED) throw Error("no address space left for the memory pool; raise the limit (ulimit -v)");
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  const std::uintptr_t aligned = round_up(address, page_bytes);
  if (aligned > address) ::munmap(map, aligned - address);
  if (address + page_bytes > aligned)
    ::munmap(reinterpret_cast<void*>(aligned + bytes), address + page_bytes - aligned);
  base_ = reinterpret_cast<std::byte*>(aligned);
  reserved_bytes_ = bytes;
  ::madvise(base_, bytes,
            options.huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // only advice: ignore errors of kernels without it
  resident_.assign(bytes / page_bytes, false);
  free_.emplace(0, bytes);
}

PageArena::~PageArena() { ::munmap(base_, reserved_bytes_); }

std::size_t PageArena::missing_pages(std::size_t begin, std::size_t end) const {
  std::size_t missing = 0;
  for (std::size_t page = begin / page_bytes; page < (end + page_bytes - 1) / page_bytes; ++page)
    missing += !resident_[page];
  return missing;
}

PageArena::Block PageArena::allocate(std::size_t bytes) {
  const std::size_t need = round_up(std::max(bytes, granule), granule);
  // Picks the range that needs the fewest new pages; then the smallest; then the first.
  auto best = free_.end();
  std::size_t best_missing = 0;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < need) continue;
    const std::size_t missing = missing_pages(it->first, it->first + need);
    if (best != free_.end() && (missing > best_missing || (missing == best_missing && it->second >= best->second)))
      continue;
    best = it;
    best_missing = missing;
    if (missing == 0 && it->second == need) break;
  }
  if (best == free_.end()) return {};

  const std::size_t offset = best->first, range = best->second;
  const std::size_t taken = range - need < smallest_remainder ? range : need;
  free_.erase(best);
  if (taken < range) free_.emplace(offset + taken, range - taken);
  live_bytes_ += taken;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  if (best_missing > 0 || taken != need) commit(offset, offset + taken);
  return {base_ + offset, taken};
}

void PageArena::commit(std::size_t begin, std::size_t end) {
  bool grew = false;
  pages_ever_used_ = std::max(pages_ever_used_, (end + page_bytes - 1) / page_bytes);
  for (std::size_t page = begin / page_bytes; page < (end + page_bytes - 1) / page_bytes; ++page) {
    if (resident_[page]) continue;
    resident_[page] = true;
    ++resident_pages_;
    grew = true;
  }
  if (grew) shrink_to(resident_limit());
}

std::size_t PageArena::resident_limit() const {
  return peak_bytes_ + std::max(options_.slack_bytes,
                                static_cast<std::size_t>(options_.slack_fraction * static_cast<double>(peak_bytes_)));
}

std::size_t PageArena::trim() {
  peak_bytes_ = live_bytes_;
  return shrink_to(0);
}

void PageArena::release(Block block) {
  const auto offset = static_cast<std::size_t>(block.data - base_);
  live_bytes_ -= block.bytes;
  auto [it, inserted] = free_.emplace(offset, block.bytes);
  ZERO_CHECK(inserted, text("block at ", offset, " freed twice"));
  if (auto next = std::next(it); next != free_.end() && it->first + it->second == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it != free_.begin()) {
    auto before = std::prev(it);
    if (before->first + before->second == it->first) {
      before->second += it->second;
      free_.erase(it);
    }
  }
}

std::size_t PageArena::shrink_to(std::size_t limit) {
  std::size_t given_back = 0;
  // From high addresses down: low ranges are reused first.
  for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
    const std::size_t first = (it->first + page_bytes - 1) / page_bytes;
    const std::size_t last = std::min((it->first + it->second) / page_bytes, pages_ever_used_);
    for (std::size_t page = last; page-- > first;) {
      if (resident_bytes() <= limit) return given_back;
      if (!resident_[page]) continue;
      ::madvise(base_ + page * page_bytes, page_bytes, MADV_DONTNEED);
      resident_[page] = false;
      --resident_pages_;
      given_back += page_bytes;
    }
  }
  return given_back;
}

}  // namespace zero

#pragma once
// PageArena: allocates blocks by best fit in one reserved address range. It counts the range's resident pages and
// returns them to the system.
//
// Addresses are plentiful, pages are not: a hole between live blocks costs memory only while its pages are resident.
// The arena therefore reserves far more addresses than the machine has memory. It keeps the pages of freed blocks for
// the next step, which avoids page faults. If new pages would bring the total above the peak of live bytes plus a
// little slack, it first returns pages of holes. Fragmentation, which is unbounded in malloc, is therefore bounded for
// any order of allocations.
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace zero {

struct PageArenaOptions {
  std::size_t reserve_bytes = 0;                    // 0: twice the physical memory, but at least 64 GiB
  std::size_t slack_bytes = std::size_t{32} << 20;  // resident pages may exceed the peak of live bytes by this,
  double slack_fraction = 0.02;                     // or by this fraction of the peak, whichever is more
  bool huge_pages = true;                           // advise transparent huge pages
};

/// Not thread-safe: the owner must lock.
class PageArena {
 public:
  static constexpr std::size_t page_bytes = std::size_t{2} << 20;  // one transparent huge page; the unit of accounting
  static constexpr std::size_t granule = 64;

  explicit PageArena(const PageArenaOptions& options);
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;  // rounded up to the granule, plus any remainder too small to use
  };

  /// Returns a 64-byte aligned block, or an empty one if the addresses are used up.
  Block allocate(std::size_t bytes);
  void release(Block block);

  /// Returns every page that holds only free addresses to the system, and starts a new peak. Returns the number of
  /// bytes released.
  std::size_t trim();

  std::size_t live_bytes() const { return live_bytes_; }
  std::size_t resident_bytes() const { return resident_pages_ * page_bytes; }  // pages touched and not returned
  std::size_t reserved_bytes() const { return reserved_bytes_; }

 private:
  std::size_t missing_pages(std::size_t begin, std::size_t end) const;
  void commit(std::size_t begin, std::size_t end);
  std::size_t shrink_to(std::size_t resident_limit);
  std::size_t resident_limit() const;

  PageArenaOptions options_;
  std::byte* base_ = nullptr;
  std::size_t reserved_bytes_ = 0;
  std::size_t live_bytes_ = 0;
  std::size_t peak_bytes_ = 0;  // of live_bytes_, since the last trim
  std::size_t resident_pages_ = 0;
  std::size_t pages_ever_used_ = 0;          // no page beyond this was ever resident
  std::vector<bool> resident_;               // one per page
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes; adjacent holes are merged
};

}  // namespace zero

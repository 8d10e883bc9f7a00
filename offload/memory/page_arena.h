#pragma once
// PageArena: best-fit blocks in one reserved range of addresses, with the pages behind it counted and given back.
//
// Addresses are plentiful, pages are not: a hole between live blocks costs memory only while pages stand behind it. So
// the arena reserves far more addresses than the machine has memory, keeps the pages of freed blocks for the next step
// (no new faults), and gives pages of holes back as soon as new ones would bring the whole above the peak of the live
// bytes and a little slack. What malloc loses by fragmentation is thereby bounded, whatever the order of allocations.
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace zero {

struct PageArenaOptions {
  std::size_t reserve_bytes = 0;                    // 0: twice the physical memory, 64 GiB at least
  std::size_t slack_bytes = std::size_t{32} << 20;  // pages may exceed the peak of live bytes by this much,
  double slack_fraction = 0.02;                     // or by this part of it, whichever is more
  bool huge_pages = true;                           // advise transparent huge pages
};

/// Not thread-safe: the owner locks.
class PageArena {
 public:
  static constexpr std::size_t page_bytes = std::size_t{2} << 20;  // one transparent huge page: the unit of counting
  static constexpr std::size_t granule = 64;

  explicit PageArena(const PageArenaOptions& options);
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;  // what it takes: `bytes` rounded to the granule, plus a remainder too small to be of use
  };

  /// 64-byte aligned. An empty block when the addresses are used up.
  Block allocate(std::size_t bytes);
  void release(Block block);

  /// Gives back every page that stands wholly behind free addresses, and begins a new peak; returns how many bytes.
  std::size_t trim();

  std::size_t live_bytes() const { return live_bytes_; }
  std::size_t resident_bytes() const { return resident_pages_ * page_bytes; }  // pages touched and not given back
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
  std::size_t pages_ever_used_ = 0;          // none beyond it was ever resident
  std::vector<bool> resident_;               // one per page
  std::map<std::size_t, std::size_t> free_;  // offset to bytes, neighbours joined
};

}  // namespace zero

#include "offload/memory/cpu_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <array>
#include <bit>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"

namespace zero {
namespace {

constexpr std::size_t largest_small = std::size_t{32}
                                      << 10;  // with header; larger blocks come from the arena one by one
constexpr std::size_t slab_bytes = std::size_t{64} << 10;
constexpr std::size_t first_class = 128;  // header and one cache line
constexpr int steps_per_doubling = 8;
constexpr int size_classes = 8 * steps_per_doubling + 1;  // 128 bytes to 32 KiB
constexpr std::uint64_t live_mark = 0x5a45524f4c495645, free_mark = 0x5a45524f46524545;

/// Precedes every block; one cache line.
struct alignas(64) Header {
  std::uint64_t mark;
  CpuAllocator::State* owner;
  MemoryTracker* tracker;
  Header* next_free;        // of the same size class
  std::size_t booked;       // bytes booked in the tracker
  std::size_t taken;        // bytes of the block, with header
  std::int16_t size_class;  // -1: from the arena
  MemoryCategory category;
};
static_assert(sizeof(Header) == 64);

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

/// Classes are multiples of 64 bytes, at most eight per doubling: a block wastes at most 1/8, or one line.
std::size_t bytes_of_class(int size_class) {
  const std::size_t base = first_class << (size_class / steps_per_doubling);
  return round_up(base + base / steps_per_doubling * static_cast<std::size_t>(size_class % steps_per_doubling), 64);
}

int class_of(std::size_t bytes) {
  if (bytes <= first_class) return 0;
  const int doubling = std::bit_width((bytes - 1) / first_class) - 1;
  int found = doubling * steps_per_doubling;
  while (bytes_of_class(found) < bytes) ++found;
  return found;
}

}  // namespace

struct CpuAllocator::State {
  explicit State(const CpuAllocatorOptions& options)
      : poison(options.poison), arena(options.arena), small(small_options(options.arena)) {}

  Header* take(std::size_t bytes);
  /// True if this was the last block of a pool without an allocator: the caller then destroys the pool.
  bool give(Header* header);

  const bool poison;
  mutable std::mutex mutex;
  PageArena arena;
  PageArena small;  // slabs lie apart: they persist and would pin pages between large blocks
  std::array<Header*, size_classes> free_lists{};
  std::size_t live_bytes = 0;
  std::size_t live_blocks = 0;
  bool orphaned = false;  // blocks outlive the allocator

 private:
  static PageArenaOptions small_options(PageArenaOptions options) {
    options.huge_pages = false;
    return options;
  }
  Header* take_small(int size_class);
};

namespace {

void free_block(void* data) {
  if (!data) return;
  auto* header = static_cast<Header*>(data) - 1;
  ZERO_CHECK(header->mark == live_mark, "a block was freed twice, or something wrote in front of it");
  if (header->owner->poison) std::memset(data, 0xFF, header->booked);
  if (header->tracker) header->tracker->add(header->category, -static_cast<std::int64_t>(header->booked));
  header->mark = free_mark;
  CpuAllocator::State* owner = header->owner;
  if (owner->give(header)) delete owner;
}

}  // namespace

Header* CpuAllocator::State::take_small(int size_class) {
  if (!free_lists[size_class]) {
    const std::size_t bytes = bytes_of_class(size_class);
    const PageArena::Block slab = small.allocate(slab_bytes);
    if (!slab.data) return nullptr;
    for (std::size_t at = slab.bytes / bytes * bytes; at >= bytes; at -= bytes) {
      auto* header = new (slab.data + at - bytes) Header{};
      header->mark = free_mark;
      header->owner = this;
      header->taken = bytes;
      header->size_class = static_cast<std::int16_t>(size_class);
      header->next_free = free_lists[size_class];
      free_lists[size_class] = header;
    }
  }
  Header* header = free_lists[size_class];
  free_lists[size_class] = header->next_free;
  return header;
}

Header* CpuAllocator::State::take(std::size_t bytes) {
  const std::size_t booked = round_up(bytes, 64), needed = booked + sizeof(Header);
  const std::lock_guard lock(mutex);
  Header* header = nullptr;
  if (needed <= largest_small) {
    header = take_small(class_of(needed));
  } else if (const PageArena::Block block = arena.allocate(needed); block.data) {
    header = new (block.data) Header{};
    header->owner = this;
    header->taken = block.bytes;
    header->size_class = -1;
  }
  if (!header) return nullptr;
  header->mark = live_mark;
  header->booked = booked;
  live_bytes += booked;
  ++live_blocks;
  return header;
}

bool CpuAllocator::State::give(Header* header) {
  const std::lock_guard lock(mutex);
  live_bytes -= header->booked;
  --live_blocks;
  if (header->size_class < 0) {
    arena.release({reinterpret_cast<std::byte*>(header), header->taken});
  } else {
    header->next_free = free_lists[header->size_class];
    free_lists[header->size_class] = header;
  }
  return orphaned && live_blocks == 0;
}

CpuAllocator::CpuAllocator(const CpuAllocatorOptions& options) : state_(std::make_unique<State>(options)) {}

CpuAllocator::~CpuAllocator() {
  if (before_ && c10::GetCPUAllocator() == this) c10::SetCPUAllocator(before_);
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.orphaned = state.live_blocks > 0;
  if (state.orphaned) static_cast<void>(state_.release());  // free_block() still needs them
}

void CpuAllocator::install() {
  before_ = c10::GetCPUAllocator();
  c10::SetCPUAllocator(this);
}

c10::DataPtr CpuAllocator::allocate(std::size_t bytes) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, nullptr, &free_block, cpu};
  Header* header = state_->take(bytes);
  if (!header) {
    throw Error(text("no memory for ", bytes, " bytes: the pool's ", state_->arena.reserved_bytes(),
                     " bytes of addresses are used up (", live_bytes(),
                     " bytes live); raise the limit on address space (ulimit -v)"));
  }
  header->category = current_category();
  header->tracker = current_tracker();
  if (header->tracker) header->tracker->add(header->category, static_cast<std::int64_t>(header->booked));
  void* data = header + 1;
  if (state_->poison) std::memset(data, 0xFF, header->booked);
  return {data, data, &free_block, cpu};
}

c10::DeleterFnPtr CpuAllocator::raw_deleter() const { return &free_block; }

void CpuAllocator::copy_data(void* destination, const void* source, std::size_t bytes) const {
  default_copy_data(destination, source, bytes);
}

std::size_t CpuAllocator::trim() {
  const std::lock_guard lock(state_->mutex);
  return state_->arena.trim() + state_->small.trim();
}

std::size_t CpuAllocator::live_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->live_bytes;
}

std::size_t CpuAllocator::pooled_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->arena.resident_bytes() + state_->small.resident_bytes() - state_->live_bytes;
}

}  // namespace zero

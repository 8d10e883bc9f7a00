#include "zero/estimate/meta_allocator.h"

#include <c10/core/Storage.h>

#include <algorithm>

#include "base/error.h"

namespace zero {
namespace {

constexpr std::size_t line = 64;

std::size_t rounded_up(std::size_t bytes) { return (bytes + line - 1) / line * line; }

struct HeldBlock {
  std::shared_ptr<AllocationTrace> trace;
  int number;
};

void give_back(void* block) {
  const std::unique_ptr<HeldBlock> held(static_cast<HeldBlock*>(block));
  if (held) held->trace->give(held->number);
}

}  // namespace

int AllocationTrace::take(std::size_t bytes) {
  const int block = int(blocks_.size());
  blocks_.push_back({std::int64_t(rounded_up(bytes)), current_category()});
  events_.push_back({block, true});
  live_[int(blocks_.back().category)] += blocks_.back().bytes;
  return block;
}

void AllocationTrace::give(int block) {
  events_.push_back({block, false});
  live_[int(blocks_[std::size_t(block)].category)] -= blocks_[std::size_t(block)].bytes;
}

std::int64_t AllocationTrace::peak_since(std::size_t moment) const {
  std::vector<bool> mine(blocks_.size());
  std::int64_t sum = 0, most = 0;
  for (std::size_t e = moment; e < events_.size(); ++e) {
    const auto block = std::size_t(events_[e].block);
    if (events_[e].taken) mine[block] = true;
    if (mine[block]) sum += events_[e].taken ? blocks_[block].bytes : -blocks_[block].bytes;
    most = std::max(most, sum);
  }
  return most;
}

std::vector<int> AllocationTrace::alive_at_peak(MemoryCategory category) const {
  std::int64_t sum = 0, most = 0;
  std::size_t moment = 0;
  for (std::size_t e = 0; e < events_.size(); ++e) {
    const Block& block = blocks_[std::size_t(events_[e].block)];
    if (block.category != category) continue;
    sum += events_[e].taken ? block.bytes : -block.bytes;
    if (sum <= most) continue;
    most = sum;
    moment = e + 1;
  }
  std::vector<bool> alive(blocks_.size());
  for (std::size_t e = 0; e < moment; ++e) alive[std::size_t(events_[e].block)] = events_[e].taken;
  std::vector<int> found;
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (alive[b] && blocks_[b].category == category) found.push_back(int(b));
  return found;
}

MetaAllocator::MetaAllocator() : before_(c10::GetAllocator(c10::kMeta)) {
  ZERO_CHECK(!dynamic_cast<MetaAllocator*>(before_), "one rank is counted on Meta at a time");
  c10::SetAllocator(c10::kMeta, this);
}

MetaAllocator::~MetaAllocator() { c10::SetAllocator(c10::kMeta, before_); }

c10::DataPtr MetaAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &give_back, c10::Device(c10::kMeta)};
  void* address = reinterpret_cast<void*>(next_);
  next_ += rounded_up(bytes);
  return {address, new HeldBlock{trace_, trace_->take(bytes)}, &give_back, c10::Device(c10::kMeta)};
}

c10::DeleterFnPtr MetaAllocator::raw_deleter() const { return &give_back; }

int MetaAllocator::block_of(const c10::Storage& storage) {
  return static_cast<const HeldBlock*>(storage.data_ptr().get_context())->number;
}

}  // namespace zero

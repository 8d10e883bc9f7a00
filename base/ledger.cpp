#include "base/ledger.h"

#include <cstddef>

namespace zero {
namespace {

thread_local MemoryCategory thread_category = MemoryCategory::other;
thread_local Ledger* thread_ledger = nullptr;

void raise_to(std::atomic<std::int64_t>& peak, std::int64_t value) {
  std::int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

const char* name_of(MemoryCategory category) {
  static constexpr const char* names[memory_categories] = {"parameters", "gradients",   "optimizer",
                                                           "buffers",    "activations", "other"};
  return names[static_cast<std::size_t>(category)];
}

MemoryCategory current_category() { return thread_category; }
Ledger* current_ledger() { return thread_ledger; }

void Ledger::add(MemoryCategory category, std::int64_t bytes) {
  for (Count* count : {&categories_[static_cast<std::size_t>(category)], &total_}) {
    const std::int64_t now = count->live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (bytes > 0) raise_to(count->peak, now);
  }
}

std::int64_t Ledger::live(MemoryCategory category) const {
  return categories_[static_cast<std::size_t>(category)].live;
}
std::int64_t Ledger::peak(MemoryCategory category) const {
  return categories_[static_cast<std::size_t>(category)].peak;
}
std::int64_t Ledger::live() const { return total_.live; }
std::int64_t Ledger::peak() const { return total_.peak; }

void Ledger::reset_peak() {
  for (Count& count : categories_) count.peak = count.live.load();
  total_.peak = total_.live.load();
}

MemoryScope::MemoryScope(MemoryCategory category) : before_(thread_category) { thread_category = category; }
MemoryScope::~MemoryScope() { thread_category = before_; }

LedgerScope::LedgerScope(Ledger& ledger) : before_(thread_ledger) { thread_ledger = &ledger; }
LedgerScope::~LedgerScope() { thread_ledger = before_; }

}  // namespace zero

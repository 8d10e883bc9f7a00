#pragma once
// PairTable: maps pairs of small numbers to values, with one or two memory accesses per lookup. Does not include
// LibTorch.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

template <class Value>
class PairTable {
 public:
  explicit PairTable(std::size_t pairs = 0) { resize(pairs); }

  /// The value of a pair, created if it is missing.
  Value& operator[](std::uint64_t pair) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(pair)];
    if (slot.pair != pair) {
      slot.pair = pair;
      ++count_;
    }
    return slot.value;
  }
  const Value* find(std::uint64_t pair) const {
    const Slot& slot = slots_[place_of(pair)];
    return slot.pair == pair ? &slot.value : nullptr;
  }

  static std::uint64_t pair(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | right;
  }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t pair = none;
    Value value{};
  };

  std::size_t place_of(std::uint64_t pair) const {
    std::size_t place = static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15u) >> shift_);
    while (slots_[place].pair != pair && slots_[place].pair != none) place = (place + 1) & (slots_.size() - 1);
    return place;
  }
  void resize(std::size_t pairs) {
    std::size_t size = 16;
    shift_ = 60;
    for (; size < 2 * pairs; size *= 2) --shift_;
    slots_.assign(size, {});
  }
  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    resize(old.size());
    for (const Slot& slot : old)
      if (slot.pair != none) slots_[place_of(slot.pair)] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
  int shift_ = 60;  // shifts a 64-bit hash so that the bits that select a slot remain
};

}  // namespace zero

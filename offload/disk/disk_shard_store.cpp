#include "offload/disk/disk_shard_store.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "offload/disk/disk_file.h"

namespace zero {
namespace {

std::int64_t round_up(std::int64_t bytes) { return (bytes + DiskFile::block - 1) / DiskFile::block * DiskFile::block; }

std::int64_t largest(const std::vector<std::int64_t>& bytes) {
  return bytes.empty() ? 1 : *std::max_element(bytes.begin(), bytes.end());
}

std::unique_ptr<BlockIo> make_io(const DiskTierOptions& options, const HostArena& arena) {
  std::unique_ptr<BlockIo> io = make_block_io(options.io, arena);
  return options.wrap ? options.wrap(std::move(io)) : std::move(io);
}

class DiskShardStore final : public ShardStore {
 public:
  DiskShardStore(const std::vector<std::int64_t>& bytes, const DiskShardOptions& options,
                 std::shared_ptr<DiskTier> tier)
      : ShardStore(bytes),
        checksums_on_(options.tier.checksums),
        tier_(std::move(tier)),
        own_directory_(tier_ ? nullptr : std::make_unique<DiskDirectory>(options.tier.directory, options.tier.rank)),
        file_(tier_ ? tier_->directory() : *own_directory_, "parameters", disk_shard_bytes(bytes, options).file),
        arena_(options.slots, static_cast<std::size_t>(largest(bytes)), MemoryCategory::parameters),
        queue_(make_io(options.tier, arena_)),
        slots_(static_cast<std::size_t>(options.slots)) {
    std::int64_t offset = 0;
    for (const std::int64_t size : bytes) {
      places_.push_back({offset, static_cast<std::size_t>(round_up(size)), 0, false});
      offset += round_up(size);
    }
  }

  void fetch(int shard) override {
    if (!slot_of(shard)) begin(shard, false);
  }

  void* acquire(int shard) override {
    Slot* slot = slot_of(shard);
    if (!slot) slot = begin(shard, true);
    ZERO_CHECK(slot->state != State::held, text("shard ", shard, " is held already"));
    finish(*slot);
    slot->state = State::held;
    return data(*slot);
  }

  void release(int shard, bool changed) override {
    Slot* slot = slot_of(shard);
    ZERO_CHECK(slot && slot->state == State::held, text("shard ", shard, " is not held"));
    slot->used = ++clock_;
    slot->state = State::clean;
    if (!changed) return;
    Place& place = places_[static_cast<std::size_t>(shard)];
    if (checksums_on_) place.checksum = checksum(data(*slot), place.bytes);
    place.written = true;
    slot->ticket = queue_.start(true, file_, place.offset, data(*slot), place.bytes, index_of(*slot));
    slot->state = State::writing;
  }

 private:
  enum class State : std::uint8_t { empty, reading, held, clean, writing };
  struct Slot {
    State state = State::empty;
    int shard = -1;
    DiskQueue::Ticket ticket = 0;
    std::uint64_t used = 0;
  };
  struct Place {
    std::int64_t offset;
    std::size_t bytes;
    std::uint64_t checksum;
    bool written;
  };

  int index_of(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }
  std::byte* data(const Slot& slot) const { return arena_.slot(index_of(slot)); }

  Slot* slot_of(int shard) {
    for (Slot& slot : slots_)
      if (slot.state != State::empty && slot.shard == shard) return &slot;
    return nullptr;
  }

  /// Ends what is in flight in a slot.
  void finish(Slot& slot) {
    const State before = slot.state;
    if (before != State::reading && before != State::writing) return;
    slot.state = before == State::writing ? State::clean : State::empty;  // should the wait throw
    queue_.wait(slot.ticket);
    slot.state = State::clean;
    const Place& place = places_[static_cast<std::size_t>(slot.shard)];
    if (before == State::reading && checksums_on_ && checksum(data(slot), place.bytes) != place.checksum) {
      throw Error(text(
          file_.path(), ": bytes ", place.offset, " to ", place.offset + static_cast<std::int64_t>(place.bytes),
          " came back other than they were written: something else wrote to the file, or the disk fails; resume from the last checkpoint"));
    }
  }

  /// A slot to fill: an empty one, the one unused for longest, or, with `wait`, the first whose write ends.
  Slot* free_slot(bool wait) {
    Slot* best = nullptr;
    for (Slot& slot : slots_) {
      if (slot.state == State::empty) return &slot;
      if (slot.state == State::clean && (!best || slot.used < best->used)) best = &slot;
    }
    if (best || !wait) return best;
    for (Slot& slot : slots_)
      if (slot.state == State::writing && (!best || slot.ticket < best->ticket)) best = &slot;
    if (!best) {  // a shard that was fetched ahead gives way to one that is needed now
      for (Slot& slot : slots_)
        if (slot.state == State::reading) best = &slot;
    }
    ZERO_CHECK(best, text("all ", slots_.size(), " slots hold shards in use"));
    finish(*best);
    return best;
  }

  Slot* begin(int shard, bool wait) {
    file_.check_intact();
    Slot* slot = free_slot(wait);
    if (!slot) return nullptr;
    const Place& place = places_.at(static_cast<std::size_t>(shard));
    slot->shard = shard;
    slot->used = ++clock_;
    slot->state = State::clean;
    if (place.written) {
      slot->ticket = queue_.start(false, file_, place.offset, data(*slot), place.bytes, index_of(*slot));
      slot->state = State::reading;
    } else {
      std::memset(data(*slot), 0, arena_.slot_bytes());
    }
    return slot;
  }

  bool checksums_on_;
  std::shared_ptr<DiskTier> tier_;
  std::unique_ptr<DiskDirectory> own_directory_;
  DiskFile file_;
  HostArena arena_;
  DiskQueue queue_;
  std::vector<Slot> slots_;
  std::vector<Place> places_;
  std::uint64_t clock_ = 0;
};

}  // namespace

DiskShardBytes disk_shard_bytes(const std::vector<std::int64_t>& bytes, const DiskShardOptions& options) {
  DiskShardBytes found;
  for (const std::int64_t size : bytes) found.file += round_up(size);
  found.file = std::max<std::int64_t>(found.file, DiskFile::block);
  found.memory = options.slots * round_up(largest(bytes));
  return found;
}

std::unique_ptr<ShardStore> make_disk_shard_store(const std::vector<std::int64_t>& bytes,
                                                  const DiskShardOptions& options, std::shared_ptr<DiskTier> tier) {
  return std::make_unique<DiskShardStore>(bytes, options, std::move(tier));
}

}  // namespace zero

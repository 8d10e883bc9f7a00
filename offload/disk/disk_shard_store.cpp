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
        arena_(options.buffers, static_cast<std::size_t>(largest(bytes)), MemoryCategory::parameters),
        queue_(make_io(options.tier, arena_)),
        buffers_(static_cast<std::size_t>(options.buffers)) {
    std::int64_t offset = 0;
    for (const std::int64_t size : bytes) {
      places_.push_back({offset, static_cast<std::size_t>(round_up(size)), 0, false});
      offset += round_up(size);
    }
  }

  void fetch(int shard) override {
    if (!buffer_of(shard)) begin(shard, false);
  }

  void* acquire(int shard) override {
    Buffer* buffer = buffer_of(shard);
    if (!buffer) buffer = begin(shard, true);
    ZERO_CHECK(buffer->state != State::held, text("shard ", shard, " is held already"));
    finish(*buffer);
    buffer->state = State::held;
    return data(*buffer);
  }

  void release(int shard, bool changed) override {
    Buffer* buffer = buffer_of(shard);
    ZERO_CHECK(buffer && buffer->state == State::held, text("shard ", shard, " is not held"));
    buffer->used = ++clock_;
    buffer->state = State::clean;
    if (!changed) return;
    Place& place = places_[static_cast<std::size_t>(shard)];
    if (checksums_on_) place.checksum = checksum(data(*buffer), place.bytes);
    place.written = true;
    buffer->ticket = queue_.start(true, file_, place.offset, data(*buffer), place.bytes, index_of(*buffer));
    buffer->state = State::writing;
  }

 private:
  enum class State : std::uint8_t { empty, reading, held, clean, writing };
  struct Buffer {
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

  int index_of(const Buffer& buffer) const { return static_cast<int>(&buffer - buffers_.data()); }
  std::byte* data(const Buffer& buffer) const { return arena_.block(index_of(buffer)); }

  Buffer* buffer_of(int shard) {
    for (Buffer& buffer : buffers_)
      if (buffer.state != State::empty && buffer.shard == shard) return &buffer;
    return nullptr;
  }

  /// Waits for the buffer's transfer.
  void finish(Buffer& buffer) {
    const State before = buffer.state;
    if (before != State::reading && before != State::writing) return;
    buffer.state = before == State::writing ? State::clean : State::empty;  // in case the wait throws
    queue_.wait(buffer.ticket);
    buffer.state = State::clean;
    const Place& place = places_[static_cast<std::size_t>(buffer.shard)];
    if (before == State::reading && checksums_on_ && checksum(data(buffer), place.bytes) != place.checksum) {
      throw Error(text(
          file_.path(), ": bytes ", place.offset, " to ", place.offset + static_cast<std::int64_t>(place.bytes),
          " came back other than they were written: something else wrote to the file, or the disk fails; resume from the last checkpoint"));
    }
  }

  /// A buffer to fill: an empty one, the least recently used one, or, with `wait`, the first whose write completes.
  Buffer* free_buffer(bool wait) {
    Buffer* best = nullptr;
    for (Buffer& buffer : buffers_) {
      if (buffer.state == State::empty) return &buffer;
      if (buffer.state == State::clean && (!best || buffer.used < best->used)) best = &buffer;
    }
    if (best || !wait) return best;
    for (Buffer& buffer : buffers_)
      if (buffer.state == State::writing && (!best || buffer.ticket < best->ticket)) best = &buffer;
    if (!best) {  // a shard needed now evicts a prefetched one
      for (Buffer& buffer : buffers_)
        if (buffer.state == State::reading) best = &buffer;
    }
    ZERO_CHECK(best, text("all ", buffers_.size(), " buffers hold shards in use"));
    finish(*best);
    return best;
  }

  Buffer* begin(int shard, bool wait) {
    file_.check_intact();
    Buffer* buffer = free_buffer(wait);
    if (!buffer) return nullptr;
    const Place& place = places_.at(static_cast<std::size_t>(shard));
    buffer->shard = shard;
    buffer->used = ++clock_;
    buffer->state = State::clean;
    if (place.written) {
      buffer->ticket = queue_.start(false, file_, place.offset, data(*buffer), place.bytes, index_of(*buffer));
      buffer->state = State::reading;
    } else {
      std::memset(data(*buffer), 0, arena_.block_bytes());
    }
    return buffer;
  }

  bool checksums_on_;
  std::shared_ptr<DiskTier> tier_;
  std::unique_ptr<DiskDirectory> own_directory_;
  DiskFile file_;
  HostArena arena_;
  DiskQueue queue_;
  std::vector<Buffer> buffers_;
  std::vector<Place> places_;
  std::uint64_t clock_ = 0;
};

}  // namespace

DiskShardBytes disk_shard_bytes(const std::vector<std::int64_t>& bytes, const DiskShardOptions& options) {
  DiskShardBytes found;
  for (const std::int64_t size : bytes) found.file += round_up(size);
  found.file = std::max<std::int64_t>(found.file, DiskFile::block);
  found.memory = options.buffers * round_up(largest(bytes));
  return found;
}

std::unique_ptr<ShardStore> make_disk_shard_store(const std::vector<std::int64_t>& bytes,
                                                  const DiskShardOptions& options, std::shared_ptr<DiskTier> tier) {
  return std::make_unique<DiskShardStore>(bytes, options, std::move(tier));
}

}  // namespace zero

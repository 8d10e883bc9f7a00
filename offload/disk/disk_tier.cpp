#include "offload/disk/disk_tier.h"

#include "base/error.h"
#include "base/log.h"
#include "offload/disk/disk_state_store.h"

namespace zero {
namespace {

std::unique_ptr<BlockIo> make_io(const DiskTierOptions& options, const HostArena& arena) {
  std::unique_ptr<BlockIo> io = make_block_io(options.io, arena);
  return options.wrap ? options.wrap(std::move(io)) : std::move(io);
}

}  // namespace

std::shared_ptr<DiskTier> DiskTier::create(const DiskTierOptions& options) {
  return std::shared_ptr<DiskTier>(new DiskTier(options));
}

DiskTier::DiskTier(const DiskTierOptions& options)
    : options_(options),
      directory_(options.directory, options.rank),
      arena_(options.buffers, options.chunk_bytes, MemoryCategory::optimizer),
      queue_(make_io(options, arena_)) {
  ZERO_CHECK(options.buffers >= 3, "the disk tier needs three buffers");
  for (int i = 0; i < arena_.blocks(); ++i) idle_.push_back(i);
}

std::unique_ptr<StateStore> DiskTier::make_store(const std::string& name, std::int64_t elements,
                                                 const std::vector<StateSpec>& states) {
  if (states.empty()) return std::make_unique<ResidentStateStore>(elements, states);
  return std::make_unique<DiskStateStore>(shared_from_this(), name, elements, states);
}

std::optional<int> DiskTier::take(bool wait) {
  if (!wait && idle_.size() + writes_.size() <= 2) return std::nullopt;
  if (idle_.empty() && wait) {
    ZERO_CHECK(!writes_.empty(), "every buffer of the disk tier is held");
    finish(writes_.begin());
  }
  if (idle_.empty()) return std::nullopt;
  const int buffer = idle_.front();
  idle_.pop_front();
  return buffer;
}

DiskQueue::Ticket DiskTier::read(const DiskFile& file, std::int64_t offset, int buffer, std::size_t bytes) {
  return queue_.start(false, file, offset, data(buffer), bytes, buffer);
}

void DiskTier::write_back(const DiskFile& file, std::int64_t offset, int buffer, std::size_t bytes) {
  writes_.push_back({queue_.start(true, file, offset, data(buffer), bytes, buffer), &file, buffer});
}

void DiskTier::finish(std::list<WriteBack>::iterator write) {
  const WriteBack done = *write;
  writes_.erase(write);
  idle_.push_back(done.buffer);
  queue_.wait(done.ticket);
}

void DiskTier::settle(const DiskFile& file) {
  for (auto it = writes_.begin(); it != writes_.end();) {
    const auto next = std::next(it);
    if (it->file == &file) finish(it);
    it = next;
  }
}

}  // namespace zero

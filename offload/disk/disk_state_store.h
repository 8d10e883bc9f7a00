#pragma once
// DiskStateStore: keeps the states of one part of a shard in a file. They pass through the tier's buffers chunk by
// chunk.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "offload/disk/disk_file.h"
#include "offload/disk/disk_tier.h"

namespace zero {

/// The file is a sequence of chunks. A chunk holds the arrays of its states one after the other, so one transfer moves
/// it. Every chunk and every array in it fills whole disk blocks. A chunk holds a multiple of 4096 elements; the last
/// one holds the rest.
class DiskStateStore final : public StateStore {
 public:
  DiskStateStore(std::shared_ptr<DiskTier> tier, const std::string& name, std::int64_t elements,
                 const std::vector<StateSpec>& states);
  ~DiskStateStore() override;

  void for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) override;
  void prefetch() override;

  const std::string& path() const { return file_.path(); }

 private:
  struct Incoming {
    std::int64_t chunk;
    int buffer;
    DiskQueue::Ticket ticket;
    bool reading;
  };

  std::int64_t chunks() const { return (elements() + chunk_elements_ - 1) / chunk_elements_; }
  std::int64_t elements_of(std::int64_t chunk) const;
  std::size_t bytes_of(std::int64_t chunk) const;
  std::int64_t offset_of(std::int64_t chunk) const;
  StateChunk view(std::int64_t chunk, std::byte* data) const;
  bool bring(std::int64_t chunk, StateAccess access, bool wait);
  void arrive(Incoming& incoming);
  void forget_incoming() noexcept;

  std::shared_ptr<DiskTier> tier_;
  std::int64_t chunk_elements_;
  DiskFile file_;
  std::vector<std::uint64_t> checksums_;  // of the chunks as last written
  std::vector<bool> written_;             // false: never written, so all zeros
  std::deque<Incoming> incoming_;         // in ascending order of chunks
};

}  // namespace zero

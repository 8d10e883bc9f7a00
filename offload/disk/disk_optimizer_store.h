#pragma once
// DiskOptimizerStore: master and moments of one shard in a file, chunk by chunk through the tier's buffers.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "offload/disk/disk_file.h"
#include "offload/disk/disk_tier.h"

namespace zero {

struct DiskStates {
  std::string name;  // of the file
  std::int64_t elements = 0;
  c10::ScalarType type = c10::kFloat;
  bool has_master = true;
};

/// The file is a row of chunks, each [master] m v side by side, so that a chunk is one transfer. A chunk holds a
/// multiple of 4096 elements; the last one is as long as need be, rounded up to that.
class DiskOptimizerStore final : public OptimizerStore {
 public:
  DiskOptimizerStore(std::shared_ptr<DiskTier> tier, const DiskStates& states);
  ~DiskOptimizerStore() override;

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
  std::int64_t padded_elements(std::int64_t chunk) const;
  std::size_t bytes_of(std::int64_t chunk) const;
  std::int64_t offset_of(std::int64_t chunk) const;
  StateChunk view(std::int64_t chunk, std::byte* data) const;
  bool bring(std::int64_t chunk, StateAccess access, bool wait);
  void arrive(Incoming& incoming);
  void forget_incoming() noexcept;

  std::shared_ptr<DiskTier> tier_;
  int states_;  // per element: 3, or 2 without a master
  std::int64_t chunk_elements_;
  DiskFile file_;
  std::vector<std::uint64_t> checksums_;  // of the chunks as last written
  std::vector<bool> written_;             // the others are zeros that were never written
  std::deque<Incoming> incoming_;         // in ascending order of chunks
};

}  // namespace zero

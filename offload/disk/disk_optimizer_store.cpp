#include "offload/disk/disk_optimizer_store.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::int64_t element_unit = DiskFile::block;  // whole blocks for every state, whatever its type

std::int64_t round_up(std::int64_t value) { return (value + element_unit - 1) / element_unit * element_unit; }

std::int64_t elements_per_chunk(std::size_t buffer_bytes, std::int64_t bytes_per_element) {
  const std::int64_t elements =
      static_cast<std::int64_t>(buffer_bytes) / bytes_per_element / element_unit * element_unit;
  ZERO_CHECK(elements > 0, text("buffers of ", buffer_bytes, " bytes are too small for the disk tier"));
  return elements;
}

std::int64_t state_bytes(const DiskStates& states) {
  return (states.has_master ? 3 : 2) * static_cast<std::int64_t>(c10::elementSize(states.type));
}

}  // namespace

std::int64_t disk_state_bytes(std::int64_t elements, c10::ScalarType state_type, bool has_master) {
  return std::max(round_up(elements), element_unit) * state_bytes({"", elements, state_type, has_master});
}

DiskOptimizerStore::DiskOptimizerStore(std::shared_ptr<DiskTier> tier, const DiskStates& states)
    : OptimizerStore(states.elements, states.type, states.has_master),
      tier_(std::move(tier)),
      states_(states.has_master ? 3 : 2),
      chunk_elements_(elements_per_chunk(tier_->buffer_bytes(), state_bytes(states))),
      file_(tier_->directory(), states.name, disk_state_bytes(states.elements, states.type, states.has_master)),
      checksums_(static_cast<std::size_t>(chunks())),
      written_(static_cast<std::size_t>(chunks())) {}

DiskOptimizerStore::~DiskOptimizerStore() {
  forget_incoming();
  try {
    tier_->settle(file_);
  } catch (const std::exception& error) {
    log_warning(error.what());  // the states go anyway
  }
}

std::int64_t DiskOptimizerStore::padded_elements(std::int64_t chunk) const {
  return round_up(std::min(chunk_elements_, elements() - chunk * chunk_elements_));
}

std::size_t DiskOptimizerStore::bytes_of(std::int64_t chunk) const {
  return static_cast<std::size_t>(padded_elements(chunk) * states_) * c10::elementSize(state_type());
}

std::int64_t DiskOptimizerStore::offset_of(std::int64_t chunk) const {
  return chunk * chunk_elements_ * states_ * static_cast<std::int64_t>(c10::elementSize(state_type()));
}

StateChunk DiskOptimizerStore::view(std::int64_t chunk, std::byte* data) const {
  const std::int64_t begin = chunk * chunk_elements_;
  const std::size_t stride = bytes_of(chunk) / static_cast<std::size_t>(states_);
  std::byte* moments = data + (has_master() ? stride : 0);
  return {begin, std::min(begin + chunk_elements_, elements()), has_master() ? data : nullptr, moments,
          moments + stride};
}

bool DiskOptimizerStore::bring(std::int64_t chunk, StateAccess access, bool wait) {
  const std::optional<int> buffer = tier_->take(wait);
  if (!buffer) return false;
  Incoming incoming{chunk, *buffer, 0, access != StateAccess::write && written_[static_cast<std::size_t>(chunk)]};
  if (incoming.reading) {
    incoming.ticket = tier_->read(file_, offset_of(chunk), *buffer, bytes_of(chunk));
  } else {
    std::memset(tier_->data(*buffer), 0, bytes_of(chunk));
  }
  incoming_.push_back(incoming);
  return true;
}

void DiskOptimizerStore::arrive(Incoming& incoming) {
  if (!incoming.reading) return;
  incoming.reading = false;
  tier_->wait(incoming.ticket);
  if (!tier_->checksums()) return;
  if (checksum(tier_->data(incoming.buffer), bytes_of(incoming.chunk)) !=
      checksums_[static_cast<std::size_t>(incoming.chunk)]) {
    throw Error(text(
        file_.path(), ": bytes ", offset_of(incoming.chunk), " to ",
        offset_of(incoming.chunk) + static_cast<std::int64_t>(bytes_of(incoming.chunk)),
        " came back other than they were written: something else wrote to the file, or the disk fails; resume from the last checkpoint"));
  }
}

void DiskOptimizerStore::forget_incoming() noexcept {
  for (const Incoming& incoming : incoming_) {
    try {
      if (incoming.reading) tier_->wait(incoming.ticket);
    } catch (const std::exception&) {  // nobody wants these bytes any more
    }
    tier_->give(incoming.buffer);
  }
  incoming_.clear();
}

void DiskOptimizerStore::prefetch() {
  if (!incoming_.empty() || chunks() == 0) return;
  tier_->settle(file_);
  bring(0, StateAccess::read_write, false);
}

void DiskOptimizerStore::for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) {
  file_.check_intact();
  if (access == StateAccess::write) forget_incoming();
  tier_->settle(file_);
  struct Cleanup {
    DiskOptimizerStore& store;
    ~Cleanup() { store.forget_incoming(); }
  } cleanup{*this};

  std::int64_t next = incoming_.empty() ? 0 : incoming_.back().chunk + 1;
  for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
    if (incoming_.empty()) bring(next++, access, true);
    arrive(incoming_.front());
    // The next chunk travels while this one is worked on. Waiting for a buffer here is waiting for the disk in any
    // case.
    if (incoming_.size() == 1 && next < chunks()) bring(next++, access, true);
    const int buffer = incoming_.front().buffer;
    visit(view(chunk, tier_->data(buffer)));
    incoming_.pop_front();
    if (access == StateAccess::read) {
      tier_->give(buffer);
      continue;
    }
    if (tier_->checksums())
      checksums_[static_cast<std::size_t>(chunk)] = checksum(tier_->data(buffer), bytes_of(chunk));
    written_[static_cast<std::size_t>(chunk)] = true;
    tier_->write_back(file_, offset_of(chunk), buffer, bytes_of(chunk));
  }
}

}  // namespace zero

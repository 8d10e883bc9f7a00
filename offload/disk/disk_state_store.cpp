#include "offload/disk/disk_state_store.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::int64_t element_unit = 4096;

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Bytes of one state's array in a chunk of that many elements.
std::int64_t array_bytes(const StateSpec& state, std::int64_t elements) {
  return round_up(state.bytes(elements), DiskFile::block);
}

std::int64_t chunk_bytes(const std::vector<StateSpec>& states, std::int64_t elements) {
  std::int64_t bytes = 0;
  for (const StateSpec& state : states) bytes += array_bytes(state, elements);
  return bytes;
}

/// The most elements that fit into a buffer.
std::int64_t elements_per_chunk(std::size_t buffer_bytes, const std::vector<StateSpec>& states) {
  const auto room = static_cast<std::int64_t>(buffer_bytes);
  std::int64_t elements = room / std::max<std::int64_t>(1, state_bytes(states, element_unit)) * element_unit;
  while (elements > 0 && chunk_bytes(states, elements) > room) elements -= element_unit;
  ZERO_CHECK(elements > 0, text("buffers of ", buffer_bytes, " bytes are too small for the disk tier"));
  return elements;
}

std::int64_t file_bytes(std::size_t buffer_bytes, std::int64_t elements, const std::vector<StateSpec>& states) {
  const std::int64_t per_chunk = elements_per_chunk(buffer_bytes, states);
  return std::max(elements / per_chunk * chunk_bytes(states, per_chunk) + chunk_bytes(states, elements % per_chunk),
                  std::int64_t(DiskFile::block));
}

}  // namespace

std::int64_t disk_state_bytes(const DiskTierOptions& options, std::int64_t elements,
                              const std::vector<StateSpec>& states) {
  return file_bytes(options.chunk_bytes, elements, states);
}

DiskStateStore::DiskStateStore(std::shared_ptr<DiskTier> tier, const std::string& name, std::int64_t elements,
                               const std::vector<StateSpec>& states)
    : StateStore(elements, states),
      tier_(std::move(tier)),
      chunk_elements_(elements_per_chunk(tier_->buffer_bytes(), states)),
      file_(tier_->directory(), name, file_bytes(tier_->buffer_bytes(), elements, states)),
      checksums_(static_cast<std::size_t>(chunks())),
      written_(static_cast<std::size_t>(chunks())) {}

DiskStateStore::~DiskStateStore() {
  forget_incoming();
  try {
    tier_->settle(file_);
  } catch (const std::exception& error) {
    log_warning(error.what());  // the states are discarded anyway
  }
}

std::int64_t DiskStateStore::elements_of(std::int64_t chunk) const {
  return std::min(chunk_elements_, elements() - chunk * chunk_elements_);
}

std::size_t DiskStateStore::bytes_of(std::int64_t chunk) const {
  return static_cast<std::size_t>(chunk_bytes(states(), elements_of(chunk)));
}

std::int64_t DiskStateStore::offset_of(std::int64_t chunk) const {
  return chunk * chunk_bytes(states(), chunk_elements_);
}

StateChunk DiskStateStore::view(std::int64_t chunk, std::byte* data) const {
  const std::int64_t begin = chunk * chunk_elements_, count = elements_of(chunk);
  StateChunk view{begin, begin + count, {}};
  for (const StateSpec& state : states()) {
    view.states.push_back(data);
    data += array_bytes(state, count);
  }
  return view;
}

bool DiskStateStore::bring(std::int64_t chunk, StateAccess access, bool wait) {
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

void DiskStateStore::arrive(Incoming& incoming) {
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

void DiskStateStore::forget_incoming() noexcept {
  for (const Incoming& incoming : incoming_) {
    try {
      if (incoming.reading) tier_->wait(incoming.ticket);
    } catch (const std::exception&) {  // nobody needs these bytes any more
    }
    tier_->give(incoming.buffer);
  }
  incoming_.clear();
}

void DiskStateStore::prefetch() {
  if (!incoming_.empty() || chunks() == 0) return;
  tier_->settle(file_);
  bring(0, StateAccess::read_write, false);
}

void DiskStateStore::for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) {
  file_.check_intact();
  if (access == StateAccess::write) forget_incoming();
  tier_->settle(file_);
  struct Cleanup {
    DiskStateStore& store;
    ~Cleanup() { store.forget_incoming(); }
  } cleanup{*this};

  std::int64_t next = incoming_.empty() ? 0 : incoming_.back().chunk + 1;
  for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
    if (incoming_.empty()) bring(next++, access, true);
    arrive(incoming_.front());
    // Prefetch the next chunk while this one is in use. Waiting for a buffer here means waiting for the disk
    // anyway.
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

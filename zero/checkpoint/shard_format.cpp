#include "zero/checkpoint/shard_format.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/durable_file.h"

namespace zero {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

ShardFormat::ShardFormat(std::vector<ShardSection> sections, std::vector<std::vector<StateSpec>> states,
                         std::int64_t chunk_elements)
    : sections_(std::move(sections)), states_(std::move(states)), chunk_elements_(chunk_elements) {
  ZERO_CHECK(chunk_elements > 0, "a shard file of empty chunks");
  for (int s = 0; s < int(sections_.size()); ++s) {
    const std::int64_t count = sections_[std::size_t(s)].count;
    places_.push_back({chunks_, table_offset_});
    chunks_ += round_up(count, chunk_elements_) / chunk_elements_;
    table_offset_ += count / chunk_elements_ * padded(s, chunk_elements_) + padded(s, count % chunk_elements_);
  }
}

const std::vector<StateSpec>& ShardFormat::states(int section) const {
  return states_.at(std::size_t(sections_.at(std::size_t(section)).group));
}

std::int64_t ShardFormat::padded(int section, std::int64_t elements) const {
  return round_up(state_bytes(states(section), elements), DurableFile::block);
}

std::int64_t ShardFormat::byte_of(const ShardChunk& chunk, std::size_t state, std::int64_t element) const {
  const std::vector<StateSpec>& specs = states(chunk.section);
  std::int64_t byte = 0;
  for (std::size_t s = 0; s < state; ++s) byte += specs[s].bytes(chunk.count);
  return byte + specs[state].bytes(element);
}

ShardChunk ShardFormat::chunk(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < chunks_, "no such chunk");
  // Finds the last section whose first chunk is not after `index`. Empty sections have no chunks.
  auto place = std::upper_bound(places_.begin(), places_.end(), index,
                                [](std::int64_t i, const Place& p) { return i < p.chunk; }) -
               1;
  const auto section = static_cast<std::size_t>(place - places_.begin());
  const std::int64_t number = index - place->chunk, skipped = number * chunk_elements_;
  const std::int64_t count = std::min(chunk_elements_, sections_[section].count - skipped);
  return {static_cast<int>(section), sections_[section].begin + skipped, count,
          place->offset + number * padded(int(section), chunk_elements_), padded(int(section), count)};
}

std::int64_t ShardFormat::chunk_of(int section, std::int64_t element) const {
  const ShardSection& range = sections_.at(static_cast<std::size_t>(section));
  ZERO_CHECK(element >= range.begin && element < range.begin + range.count, "the element is not in the section");
  return places_[static_cast<std::size_t>(section)].chunk + (element - range.begin) / chunk_elements_;
}

std::int64_t ShardFormat::largest_chunk_bytes() const {
  std::int64_t most = 0;
  for (int s = 0; s < int(sections_.size()); ++s)
    most = std::max(most, padded(s, std::min(sections_[std::size_t(s)].count, chunk_elements_)));
  return most;
}

std::int64_t ShardFormat::table_bytes_of(std::int64_t chunks) { return round_up(8 * chunks, DurableFile::block); }

}  // namespace zero

#include "zero/checkpoint/shard_format.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/durable_file.h"

namespace zero {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

ShardFormat::ShardFormat(std::vector<ShardSection> sections, std::int64_t chunk_elements, std::int64_t element_bytes)
    : sections_(std::move(sections)), chunk_elements_(chunk_elements), element_bytes_(element_bytes) {
  ZERO_CHECK(chunk_elements > 0 && element_bytes > 0, "a shard file of empty chunks");
  for (const ShardSection& section : sections_) {
    places_.push_back({chunks_, table_offset_});
    chunks_ += round_up(section.count, chunk_elements_) / chunk_elements_;
    table_offset_ +=
        section.count / chunk_elements_ * padded(chunk_elements_) + padded(section.count % chunk_elements_);
  }
}

std::int64_t ShardFormat::padded(std::int64_t elements) const {
  return round_up(3 * elements * element_bytes_, DurableFile::block);
}

ShardChunk ShardFormat::chunk(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < chunks_, "no such chunk");
  // The last section whose first chunk is not behind it; empty sections have none.
  auto place = std::upper_bound(places_.begin(), places_.end(), index,
                                [](std::int64_t i, const Place& p) { return i < p.chunk; }) -
               1;
  const auto section = static_cast<std::size_t>(place - places_.begin());
  const std::int64_t number = index - place->chunk, skipped = number * chunk_elements_;
  const std::int64_t count = std::min(chunk_elements_, sections_[section].count - skipped);
  return {static_cast<int>(section), sections_[section].begin + skipped, count,
          place->offset + number * padded(chunk_elements_), padded(count)};
}

std::int64_t ShardFormat::chunk_of(int section, std::int64_t element) const {
  const ShardSection& range = sections_.at(static_cast<std::size_t>(section));
  ZERO_CHECK(element >= range.begin && element < range.begin + range.count, "the element is not in the section");
  return places_[static_cast<std::size_t>(section)].chunk + (element - range.begin) / chunk_elements_;
}

std::int64_t ShardFormat::largest_chunk_bytes() const {
  std::int64_t elements = 0;
  for (const ShardSection& section : sections_) elements = std::max(elements, std::min(section.count, chunk_elements_));
  return padded(elements);
}

std::int64_t ShardFormat::table_bytes() const { return round_up(8 * chunks_, DurableFile::block); }

}  // namespace zero

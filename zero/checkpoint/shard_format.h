#pragma once
// ShardFormat: the layout of a shard file, in integers only.
//
// A file holds sections: ranges of groups, each divided into chunks of `chunk_elements`. A chunk holds the arrays of
// its group's states one after the other, padded with zeros to 4096 bytes. A chunk is read and verified as a whole.
// After the last chunk comes a table of the chunks' 64-bit checksums (base/hash.h), little-endian and padded likewise.
// The table's own checksum is in the manifest.
#include <cstdint>
#include <vector>

#include "offload/state_store.h"

namespace zero {

/// The states of elements [begin, begin + count) of a group.
struct ShardSection {
  int group = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  bool operator==(const ShardSection&) const = default;
};

struct ShardChunk {
  int section = 0;
  std::int64_t begin = 0;  // index in the group
  std::int64_t count = 0;
  std::int64_t offset = 0;  // in the file
  std::int64_t bytes = 0;
};

class ShardFormat {
 public:
  static constexpr std::int64_t default_chunk_elements = 1 << 19;  // 6 MiB of AdamW's states in fp32

  /// `states`: the states of every group. Sections begin at multiples of their grain, which divides `chunk_elements`.
  ShardFormat(std::vector<ShardSection> sections, std::vector<std::vector<StateSpec>> states,
              std::int64_t chunk_elements);

  const std::vector<ShardSection>& sections() const { return sections_; }
  const std::vector<StateSpec>& states(int section) const;
  std::int64_t chunks() const { return chunks_; }
  ShardChunk chunk(std::int64_t index) const;
  /// Returns the position in the chunk, in bytes, of an element's state. `element` counts from the chunk's first
  /// element.
  std::int64_t byte_of(const ShardChunk& chunk, std::size_t state, std::int64_t element) const;
  /// Returns the chunk that holds an element of a section.
  std::int64_t chunk_of(int section, std::int64_t element) const;
  std::int64_t largest_chunk_bytes() const;
  std::int64_t table_offset() const { return table_offset_; }
  std::int64_t table_bytes() const { return table_bytes_of(chunks_); }
  /// Returns the bytes of a table of so many chunks.
  static std::int64_t table_bytes_of(std::int64_t chunks);
  std::int64_t bytes() const { return table_offset_ + table_bytes(); }

 private:
  struct Place {
    std::int64_t chunk, offset;  // of the section's first chunk
  };
  std::int64_t padded(int section, std::int64_t elements) const;

  std::vector<ShardSection> sections_;
  std::vector<Place> places_;
  std::vector<std::vector<StateSpec>> states_;
  std::int64_t chunk_elements_;
  std::int64_t chunks_ = 0, table_offset_ = 0;
};

}  // namespace zero

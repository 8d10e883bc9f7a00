#pragma once
// ShardFormat: what lies where in a shard file. Integers only.
//
// A file holds sections: ranges of flat groups, each cut into chunks of `chunk_elements`. A chunk is [master][m][v]
// side by side in the state type, filled up with zeros to 4096 bytes, and is read and verified as a whole. Behind the
// last chunk stand the chunks' 64-bit checksums (base/hash.h), little-endian, filled up likewise; the checksum of
// this table is in the manifest.
#include <cstdint>
#include <vector>

namespace zero {

/// The states of elements [begin, begin + count) of a group's flat vector.
struct ShardSection {
  int group = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  bool operator==(const ShardSection&) const = default;
};

struct ShardChunk {
  int section = 0;
  std::int64_t begin = 0;  // flat element of the group
  std::int64_t count = 0;
  std::int64_t offset = 0;  // in the file
  std::int64_t bytes = 0;
};

class ShardFormat {
 public:
  static constexpr std::int64_t default_chunk_elements = 1 << 19;  // 6 MiB of fp32 states

  /// `element_bytes`: of one state.
  ShardFormat(std::vector<ShardSection> sections, std::int64_t chunk_elements, std::int64_t element_bytes);

  const std::vector<ShardSection>& sections() const { return sections_; }
  std::int64_t element_bytes() const { return element_bytes_; }
  std::int64_t chunks() const { return chunks_; }
  ShardChunk chunk(std::int64_t index) const;
  /// The chunk that holds a flat element of a section.
  std::int64_t chunk_of(int section, std::int64_t element) const;
  std::int64_t largest_chunk_bytes() const;
  std::int64_t table_offset() const { return table_offset_; }
  std::int64_t table_bytes() const;
  std::int64_t bytes() const { return table_offset_ + table_bytes(); }

 private:
  struct Place {
    std::int64_t chunk, offset;  // of the section's first chunk
  };
  std::int64_t padded(std::int64_t elements) const;

  std::vector<ShardSection> sections_;
  std::vector<Place> places_;
  std::int64_t chunk_elements_, element_bytes_;
  std::int64_t chunks_ = 0, table_offset_ = 0;
};

}  // namespace zero

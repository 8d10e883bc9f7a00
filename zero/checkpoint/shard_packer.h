#pragma once
// ShardPacker: packs states that arrive in pieces of any size into the chunks of a shard file, in memory.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/shard_format.h"

namespace zero {

class ShardPacker {
 public:
  /// Returns the memory for a chunk: 8-byte aligned, and large enough for all its bytes.
  using Place = std::function<std::byte*(const ShardChunk& chunk)>;
  /// Consumes a complete chunk, padding included; the next chunk may reuse its memory. May be empty.
  using Use = std::function<void(const ShardChunk& chunk, const std::byte* at)>;

  /// The format must outlive the packer.
  ShardPacker(const ShardFormat& format, Place place, Use use);

  /// Appends the next `count` elements' states. The last of these elements must end a section or a block of every
  /// grain.
  void append(const std::vector<const void*>& states, std::int64_t count);
  /// Call after the last element.
  void finish() const;

 private:
  const ShardFormat& format_;
  Place place_;
  Use use_;
  std::int64_t chunk_ = 0;   // being filled
  std::int64_t filled_ = 0;  // elements in that chunk
};

/// Packs this rank's part of the states as `format` describes (zero/checkpoint/state_shares.h).
void pack_states(const CheckpointModels& of, const ShardFormat& format, ShardPacker packer);

}  // namespace zero

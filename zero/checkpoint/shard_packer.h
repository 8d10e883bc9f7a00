#pragma once
// ShardPacker: states that come in pieces of any size, laid out in memory as the chunks of a shard file.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/shard_format.h"

namespace zero {

class ShardPacker {
 public:
  /// Where a chunk is laid out: 8-byte aligned, room for all its bytes.
  using Place = std::function<std::byte*(const ShardChunk& chunk)>;
  /// What is done with a chunk that is complete, zeros behind its states included; the next one may take its place. May be empty.
  using Use = std::function<void(const ShardChunk& chunk, const std::byte* at)>;

  /// The format outlives the packer.
  ShardPacker(const ShardFormat& format, Place place, Use use);

  /// The states of the next `count` elements, section by section; `count` ends a section or a block of every grain.
  void append(const std::vector<const void*>& states, std::int64_t count);
  /// After the last element.
  void finish() const;

 private:
  const ShardFormat& format_;
  Place place_;
  Use use_;
  std::int64_t chunk_ = 0;   // being filled
  std::int64_t filled_ = 0;  // elements of it
};

/// Packs this rank's part of the states, which is that of the format (zero/checkpoint/state_shares.h).
void pack_states(const CheckpointModels& of, const ShardFormat& format, ShardPacker packer);

}  // namespace zero

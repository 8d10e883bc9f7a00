#pragma once
// ShardReader: reads ranges of states from one shard file and returns verified data only. Holds one chunk and the
// table.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "offload/memory/host_arena.h"
#include "zero/checkpoint/shard_format.h"
#include "zero/checkpoint/shard_writer.h"

namespace zero {

using Checksum = std::uint64_t (*)(const std::byte* data, std::size_t bytes);

class ShardReader {
 public:
  /// Reads the table. `sum`: the checksum that the manifest's version uses. Every member throws DamagedCheckpoint,
  /// which names the file and position, if contents differ from those written. If contents are unreadable, it throws
  /// InputError.
  ShardReader(FileCalls& calls, const std::string& path, ShardFormat format, const FileMark& mark, Checksum sum);

  /// Reads elements [begin, begin + count) of the group. They must be whole blocks inside one section. `to`: one
  /// destination for each state, in the state's type; null skips the state.
  void read(int section, std::int64_t begin, std::int64_t count, const std::vector<void*>& to);
  /// Reads every chunk.
  void verify();

 private:
  std::byte* data() const { return buffer_->block(0); }
  void bring(std::int64_t chunk);
  void read_bytes(std::int64_t offset, std::int64_t bytes);

  ShardFormat format_;
  Checksum checksum_;
  File file_;
  std::vector<std::uint64_t> table_;
  std::unique_ptr<HostArena> buffer_;
  std::int64_t chunk_ = -1;  // in the buffer
};

}  // namespace zero

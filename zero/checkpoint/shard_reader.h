#pragma once
// ShardReader: ranges of one shard file's states. Nothing is handed out that was not verified. Holds one chunk and the
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
  /// Reads the table. `sum`: the checksum of the manifest's version. Every member throws DamagedCheckpoint, which names
  /// the file and the place, when the contents are not what was written, and InputError when they cannot be read.
  ShardReader(FileCalls& calls, const std::string& path, ShardFormat format, const FileMark& mark, Checksum sum);

  /// Elements [begin, begin + count) of the group, all inside the section and whole blocks of it. `to`: where each of the
  /// group's states goes, in its type; null: it is not wanted.
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

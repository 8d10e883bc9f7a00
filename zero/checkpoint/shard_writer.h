#pragma once
// ShardWriter: one rank's shard file, from states that come in chunks of any size. Holds one chunk and the table.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/durable_file.h"
#include "offload/memory/host_arena.h"
#include "zero/checkpoint/shard_format.h"

namespace zero {

/// What a manifest tells of a file's content.
struct FileMark {
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;  // of the table of chunks

  bool operator==(const FileMark&) const = default;
};

class ShardWriter {
 public:
  /// The format outlives the writer. Error, with path and remedy, from every member.
  ShardWriter(FileCalls& calls, const std::string& path, const ShardFormat& format);

  /// The states of the next `count` elements, section by section; `count` ends a section or a block of every grain.
  void append(const std::vector<const void*>& states, std::int64_t count);
  /// After the last element: writes the table and syncs the file.
  FileMark finish();

 private:
  void flush();

  const ShardFormat& format_;
  DurableFile file_;
  HostArena buffer_;
  std::int64_t chunk_ = 0;   // being filled
  std::int64_t filled_ = 0;  // elements of it
  std::vector<std::uint64_t> table_;
};

}  // namespace zero

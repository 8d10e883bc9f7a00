#include "zero/checkpoint/shard_reader.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"
#include "zero/checkpoint/damaged_checkpoint.h"

namespace zero {

ShardReader::ShardReader(FileCalls& calls, const std::string& path, ShardFormat format, const FileMark& mark,
                         Checksum sum)
    : format_(std::move(format)), checksum_(sum), file_(File::open(path, calls)) {
  if (mark.bytes != format_.bytes())
    throw DamagedCheckpoint(
        text(path, ": the manifest gives it ", mark.bytes, " bytes, its sections take ", format_.bytes()));
  if (file_.size() != mark.bytes)
    throw DamagedCheckpoint(text(path, ": has ", file_.size(), " bytes and was written with ", mark.bytes));
  buffer_ = std::make_unique<HostArena>(
      1, static_cast<std::size_t>(std::max(format_.largest_chunk_bytes(), format_.table_bytes())),
      MemoryCategory::buffers);
  read_bytes(format_.table_offset(), format_.table_bytes());
  if (checksum_(data(), static_cast<std::size_t>(format_.table_bytes())) != mark.checksum)
    throw DamagedCheckpoint(
        text(path, ": its table of checksums (byte ", format_.table_offset(), " on) is not the one that was written"));
  table_.resize(static_cast<std::size_t>(format_.chunks()));
  std::memcpy(table_.data(), data(), table_.size() * sizeof(std::uint64_t));
}

void ShardReader::read_bytes(std::int64_t offset, std::int64_t bytes) {
  if (const std::int64_t moved = file_.read_up_to(data(), bytes, offset); moved < bytes)
    throw DamagedCheckpoint(text(file_.path(), ": ends at byte ", offset + moved, ": it was cut short"));
}

void ShardReader::bring(std::int64_t index) {
  if (index == chunk_) return;
  chunk_ = -1;
  const ShardChunk chunk = format_.chunk(index);
  read_bytes(chunk.offset, chunk.bytes);
  if (checksum_(data(), static_cast<std::size_t>(chunk.bytes)) != table_[static_cast<std::size_t>(index)])
    throw DamagedCheckpoint(text(file_.path(), ": bytes ", chunk.offset, " to ", chunk.offset + chunk.bytes, " (block ",
                                 index, ") are not what was written"));
  chunk_ = index;
}

void ShardReader::read(int section, std::int64_t begin, std::int64_t count, const std::vector<void*>& to) {
  const std::vector<StateSpec>& specs = format_.states(section);
  for (std::size_t s = 0; s < specs.size(); ++s)
    if (to[s] && begin % specs[s].grain != 0)
      throw DamagedCheckpoint(text(file_.path(), ": element ", begin, " of group ",
                                   format_.sections()[std::size_t(section)].group, " is inside a block of ",
                                   specs[s].grain, " that ", specs[s].name, " is kept by"));
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t index = format_.chunk_of(section, begin + done);
    bring(index);
    const ShardChunk chunk = format_.chunk(index);
    const std::int64_t first = begin + done - chunk.begin, n = std::min(count - done, chunk.count - first);
    for (std::size_t s = 0; s < specs.size(); ++s)
      if (to[s])
        std::memcpy(static_cast<std::byte*>(to[s]) + specs[s].bytes(done), data() + format_.byte_of(chunk, s, first),
                    std::size_t(specs[s].bytes(n)));
    done += n;
  }
}

void ShardReader::verify() {
  for (std::int64_t index = 0; index < format_.chunks(); ++index) bring(index);
}

}  // namespace zero

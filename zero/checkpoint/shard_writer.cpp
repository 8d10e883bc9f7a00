#include "zero/checkpoint/shard_writer.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace zero {

ShardWriter::ShardWriter(FileCalls& calls, const std::string& path, const ShardFormat& format)
    : format_(format),
      file_(calls, path, DurableFile::Direct{format.bytes()}),
      buffer_(1, static_cast<std::size_t>(std::max(format.largest_chunk_bytes(), format.table_bytes())),
              MemoryCategory::buffers) {
  table_.reserve(static_cast<std::size_t>(format.chunks()));
}

void ShardWriter::append(const std::vector<const void*>& states, std::int64_t count) {
  for (std::int64_t done = 0; done < count;) {
    const ShardChunk chunk = format_.chunk(chunk_);
    const std::vector<StateSpec>& specs = format_.states(chunk.section);
    ZERO_CHECK(states.size() == specs.size(), "a section has the states of its group");
    const std::int64_t n = std::min(count - done, chunk.count - filled_);
    for (std::size_t s = 0; s < specs.size(); ++s)
      std::memcpy(buffer_.block(0) + format_.byte_of(chunk, s, filled_),
                  static_cast<const std::byte*>(states[s]) + specs[s].bytes(done), std::size_t(specs[s].bytes(n)));
    done += n;
    filled_ += n;
    if (filled_ == chunk.count) flush();
  }
}

void ShardWriter::flush() {
  const ShardChunk chunk = format_.chunk(chunk_);
  const std::int64_t used = state_bytes(format_.states(chunk.section), chunk.count);
  std::memset(buffer_.block(0) + used, 0, static_cast<std::size_t>(chunk.bytes - used));
  table_.push_back(checksum(buffer_.block(0), static_cast<std::size_t>(chunk.bytes)));
  file_.append(buffer_.block(0), chunk.bytes);
  ++chunk_;
  filled_ = 0;
}

FileMark ShardWriter::finish() {
  ZERO_CHECK(chunk_ == format_.chunks() && filled_ == 0, "a shard file lacks states");
  const auto bytes = static_cast<std::size_t>(format_.table_bytes());
  std::memset(buffer_.block(0), 0, bytes);
  std::memcpy(buffer_.block(0), table_.data(), table_.size() * sizeof(std::uint64_t));
  file_.append(buffer_.block(0), format_.table_bytes());
  file_.finish();
  return {format_.bytes(), checksum(buffer_.block(0), bytes)};
}

}  // namespace zero

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

void ShardWriter::append(const void* master, const void* m, const void* v, std::int64_t count) {
  const std::int64_t width = format_.element_bytes();
  for (std::int64_t done = 0; done < count;) {
    const ShardChunk chunk = format_.chunk(chunk_);
    const std::int64_t n = std::min(count - done, chunk.count - filled_);
    const void* states[] = {master, m, v};
    for (int s = 0; s < 3; ++s)
      std::memcpy(buffer_.block(0) + (s * chunk.count + filled_) * width,
                  static_cast<const std::byte*>(states[s]) + done * width, static_cast<std::size_t>(n * width));
    done += n;
    filled_ += n;
    if (filled_ == chunk.count) flush();
  }
}

void ShardWriter::flush() {
  const ShardChunk chunk = format_.chunk(chunk_);
  const std::int64_t used = 3 * chunk.count * format_.element_bytes();
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

#include "zero/checkpoint/shard_writer.h"

#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace zero {

ShardWriter::ShardWriter(FileCalls& calls, const std::string& path, const ShardFormat& format)
    : format_(format),
      file_(calls, path, DurableFile::Direct{format.bytes()}),
      table_(1, static_cast<std::size_t>(format.table_bytes()), MemoryCategory::buffers) {}

void ShardWriter::append(const ShardChunk& chunk, const std::byte* from) {
  const std::uint64_t sum = checksum(from, static_cast<std::size_t>(chunk.bytes));
  std::memcpy(table_.block(0) + std::size_t(chunks_) * sizeof sum, &sum, sizeof sum);
  file_.append(from, chunk.bytes);
  ++chunks_;
}

FileMark ShardWriter::finish() {
  ZERO_CHECK(chunks_ == format_.chunks(), "a shard file lacks chunks");
  file_.append(table_.block(0), format_.table_bytes());
  file_.finish();
  return {format_.bytes(), checksum(table_.block(0), static_cast<std::size_t>(format_.table_bytes()))};
}

}  // namespace zero

#include "comm/nccl/arena_map.h"

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + ArenaMap::alignment - 1) / ArenaMap::alignment * ArenaMap::alignment;
}

}  // namespace

std::int64_t ArenaMap::bytes_for(const std::vector<std::int64_t>& blocks) {
  std::int64_t sum = 0;
  for (std::int64_t bytes : blocks) sum += rounded(bytes);
  return sum;
}

std::int64_t ArenaMap::take(std::int64_t bytes) {
  ZERO_CHECK(bytes >= 0, "a block of negative size");
  const std::int64_t need = rounded(bytes);
  std::int64_t offset = 0;
  for (const auto& [begin, size] : blocks_) {
    if (begin - offset >= need) break;
    offset = begin + size;
  }
  if (bytes_ - offset < need) return -1;
  if (need > 0) blocks_.emplace(offset, need);
  return offset;
}

void ArenaMap::give_back(std::int64_t offset) {
  ZERO_CHECK(blocks_.erase(offset) == 1, text("no block was taken at offset ", offset));
}

std::int64_t ArenaMap::taken() const {
  std::int64_t sum = 0;
  for (const auto& block : blocks_) sum += block.second;
  return sum;
}

}  // namespace zero

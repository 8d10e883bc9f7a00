#pragma once
// ArenaMap: the taken blocks of one arena, as numbers. Equal requests give equal offsets, so ranks that allocate in the
// same order agree without communication.
#include <cstdint>
#include <map>
#include <vector>

namespace zero {

class ArenaMap {
 public:
  /// Every block begins at a multiple of this. No kernel or collective needs more.
  static constexpr std::int64_t alignment = 512;

  explicit ArenaMap(std::int64_t bytes = 0) : bytes_(bytes) {}

  /// Bytes of an arena that holds all of these blocks, taken in any order.
  static std::int64_t bytes_for(const std::vector<std::int64_t>& blocks);

  /// Takes `bytes` at the lowest free offset. Returns -1 if there is none. An empty block takes no room.
  std::int64_t take(std::int64_t bytes);
  /// Frees an offset that take() returned, unless the block was empty.
  void give_back(std::int64_t offset);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t taken() const;

 private:
  std::int64_t bytes_;
  std::map<std::int64_t, std::int64_t> blocks_;  // offset -> bytes, rounded up
};

}  // namespace zero

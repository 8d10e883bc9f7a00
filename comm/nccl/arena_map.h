#pragma once
// ArenaMap: which blocks of one arena are taken. It touches no memory. The same requests return the same offsets, so
// ranks that allocate in the same order agree without communication.
#include <cstdint>
#include <map>
#include <vector>

namespace zero {

class ArenaMap {
 public:
  /// Every block begins at a multiple of this. No kernel or collective needs more.
  static constexpr std::int64_t alignment = 512;

  explicit ArenaMap(std::int64_t bytes = 0) : bytes_(bytes) {}

  /// The bytes that an arena needs to hold all of these blocks, taken in any order.
  static std::int64_t bytes_for(const std::vector<std::int64_t>& blocks);

  /// Takes `bytes` at the lowest free offset and returns the offset, or -1 if there is no room. An empty block takes no
  /// room.
  std::int64_t take(std::int64_t bytes);
  /// Frees the block at an offset that take() returned. Does nothing if the block was empty.
  void give_back(std::int64_t offset);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t taken() const;

 private:
  std::int64_t bytes_;
  std::map<std::int64_t, std::int64_t> blocks_;  // offset -> bytes, rounded up
};

}  // namespace zero

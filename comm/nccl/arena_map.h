#pragma once
// ArenaMap: which blocks of one arena are taken. Numbers only: whoever asks alike gets the same offsets, so
// ranks that allocate in the same order agree without a word.
#include <cstdint>
#include <map>
#include <vector>

namespace zero {

class ArenaMap {
 public:
  /// Every block begins at a multiple of this: more than any kernel or collective asks for.
  static constexpr std::int64_t alignment = 512;

  explicit ArenaMap(std::int64_t bytes = 0) : bytes_(bytes) {}

  /// Bytes of an arena that holds all of these blocks, taken in any order.
  static std::int64_t bytes_for(const std::vector<std::int64_t>& blocks);

  /// The lowest offset at which so many bytes are free, now taken; -1 when there is none. Nothing takes no room.
  std::int64_t take(std::int64_t bytes);
  /// An offset that take() gave, unless the block was empty.
  void give_back(std::int64_t offset);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t taken() const;

 private:
  std::int64_t bytes_;
  std::map<std::int64_t, std::int64_t> blocks_;  // offset -> bytes, rounded up
};

}  // namespace zero

#pragma once
// GgufCursor: reads the head of a GGUF file from front to back, and checks each length against the rest of the file.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/file.h"

namespace zero {

inline constexpr std::int64_t gguf_max_head = 1 << 26;  // bytes before the data; a tokenizer takes a few MiB

class GgufCursor {
 public:
  explicit GgufCursor(const File& file) : file_(file) {}

  std::int64_t place() const { return place_; }
  /// The bytes left in the file, or up to the largest allowed head if that is less.
  std::int64_t bytes_left() const;
  /// Throws InputError with the file, the offset and `rule`.
  [[noreturn]] void refuse(std::string_view rule) const;

  /// Throws InputError with the file and `rule`, for a valid file with unsupported contents.
  [[noreturn]] void refuse_content(std::string_view rule) const;

  void take(void* to, std::int64_t bytes);
  template <class T>
  T take() {
    T value;
    take(&value, sizeof value);
    return value;
  }
  /// Reads a 64-bit length and then as many bytes, at most `most`.
  std::string take_text(std::int64_t most);
  /// Reads a number of items, each of which takes at least `bytes_each` bytes.
  std::int64_t take_count(std::int64_t bytes_each, std::string_view what);

 private:
  const File& file_;
  std::int64_t place_ = 0;
  std::string buffer_;  // bytes of the file, starting at buffer_begin_
  std::int64_t buffer_begin_ = 0;
};

}  // namespace zero

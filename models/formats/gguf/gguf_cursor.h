#pragma once
// GgufCursor: reads the head of a GGUF file from front to back, and checks each length against the rest of the file.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/file.h"

namespace zero {

inline constexpr std::int64_t gguf_max_head = 1 << 26;  // bytes before the data; a tokenizer takes some MiB

class GgufCursor {
 public:
  explicit GgufCursor(const File& file) : file_(file) {}

  std::int64_t place() const { return place_; }
  /// Bytes left of the file, or of the largest allowed head.
  std::int64_t bytes_left() const;
  /// Throws InputError with file, offset and `rule`.
  [[noreturn]] void refuse(std::string_view rule) const;

  /// Throws InputError with file and `rule`, for a valid file with unsupported contents.
  [[noreturn]] void refuse_content(std::string_view rule) const;

  void take(void* to, std::int64_t bytes);
  template <class T>
  T take() {
    T value;
    take(&value, sizeof value);
    return value;
  }
  /// Reads a length in 64 bits and the bytes, at most `most`.
  std::string take_text(std::int64_t most);
  /// Reads the number of items that take at least `bytes_each` bytes each.
  std::int64_t take_count(std::int64_t bytes_each, std::string_view what);

 private:
  const File& file_;
  std::int64_t place_ = 0;
  std::string buffer_;  // of the file from buffer_begin_ on
  std::int64_t buffer_begin_ = 0;
};

}  // namespace zero

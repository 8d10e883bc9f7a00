#pragma once
// GgufCursor: the head of a GGUF file from front to back, each length checked against what is left of the file.
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
  /// Of the file, or of what a head may have.
  std::int64_t bytes_left() const;
  /// InputError with file, offset and `rule`.
  [[noreturn]] void refuse(std::string_view rule) const;

  /// InputError with file and `rule`, for a sound file that holds what is not read.
  [[noreturn]] void refuse_content(std::string_view rule) const;

  void take(void* to, std::int64_t bytes);
  template <class T>
  T take() {
    T value;
    take(&value, sizeof value);
    return value;
  }
  /// A length in 64 bits and so many bytes, `most` at most.
  std::string take_text(std::int64_t most);
  /// A number of things that take at least so many bytes each.
  std::int64_t take_count(std::int64_t bytes_each, std::string_view what);

 private:
  const File& file_;
  std::int64_t place_ = 0;
  std::string buffer_;  // of the file from buffer_begin_ on
  std::int64_t buffer_begin_ = 0;
};

}  // namespace zero

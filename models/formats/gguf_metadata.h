#pragma once
// GgufMetadata: the keys and values at the front of a GGUF file, in its binary form (ggml, docs/gguf.md, version 3).
// Does not include LibTorch.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

class GgufMetadata {
 public:
  void add(std::string_view key, std::string_view value);
  void add_bool(std::string_view key, bool value);
  void add_uint32(std::string_view key, std::int64_t value);
  void add_float32(std::string_view key, double value);
  void add(std::string_view key, const std::vector<std::string>& values);
  void add(std::string_view key, const std::vector<float>& values);
  void add(std::string_view key, const std::vector<std::int32_t>& values);

  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, std::uint32_t type);
  std::uint64_t count_ = 0;
  std::string bytes_;
};

/// Appends a number in the machine's byte order, which is also the file's: little-endian.
template <class T>
void append_number(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
/// Appends a string in the file's format: a 64-bit length, then the bytes.
void append_text(std::string& bytes, std::string_view value);

}  // namespace zero

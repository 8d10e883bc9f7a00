#pragma once
// TokenFile: a file of little-endian token ids, memory-mapped read-only. No LibTorch.
#include <cstdint>
#include <string>

namespace zero {

/// How one id is stored. The value is its width in bytes.
enum class TokenWidth : std::uint8_t { uint16 = 2, uint32 = 4 };

/// "uint16" or "uint32"; InputError otherwise.
TokenWidth token_width_of(const std::string& name);

/// The narrowest type that holds every id below vocab_size.
TokenWidth narrowest_token_width(std::int64_t vocab_size);

/// Movable handle of the mapping; reads are thread-safe.
class TokenFile {
 public:
  /// Maps `path`, skipping header_bytes. `name` is what messages call the file (a cache goes by its text's name).
  /// InputError when the file is missing, unreadable, empty, or when its size is not a multiple of the width.
  TokenFile(const std::string& path, TokenWidth type, std::int64_t header_bytes = 0, std::string name = "");
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) noexcept;

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }  // in tokens
  TokenWidth type() const { return type_; }

  /// out[0 .. count) <- tokens first .. first+count, all of them inside the file.
  void read(std::int64_t first, std::int64_t count, std::int64_t* out) const;

  /// The first position in [begin, end) whose id is not below `limit`, or -1.
  std::int64_t find_beyond(std::int64_t limit, std::int64_t begin, std::int64_t end) const;

  /// "data/x.bin, token 17 (byte 34)": the place of one token, for messages.
  std::string place_of(std::int64_t position) const;

 private:
  const unsigned char* tokens() const { return static_cast<const unsigned char*>(mapping_) + header_bytes_; }

  std::string name_;
  TokenWidth type_ = TokenWidth::uint16;
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::int64_t header_bytes_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace zero

#pragma once
// TokenFile: a file of little-endian token ids. It reads the file instead of mapping it, because a mapped file that
// shrinks would kill the process with a signal. No LibTorch.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file.h"

namespace zero {

/// How one id is stored. The value is its width in bytes.
enum class TokenWidth : std::uint8_t { uint16 = 2, uint32 = 4 };

/// Parses "uint16" or "uint32". Throws InputError for any other name.
TokenWidth token_width_of(const std::string& name);

/// The narrowest type that holds every id below vocab_size.
TokenWidth narrowest_token_width(std::int64_t vocab_size);

/// The position of the ids in a file.
struct TokenSection {
  std::int64_t begin = 0;    // in bytes
  std::int64_t tokens = -1;  // -1: up to the end of the file
};

/// Reads are thread-safe.
class TokenFile {
 public:
  /// `name` is the file's name in messages (for a cache, the text's name). Throws InputError if the file is missing,
  /// unreadable or empty, or if its size is not a multiple of the width.
  TokenFile(const std::string& path, TokenWidth type, TokenSection section = {}, std::string name = "");

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }  // in tokens
  TokenWidth type() const { return type_; }

  /// Reads tokens first .. first+count, all inside the file, into out[0 .. count). Throws InputError if the file has
  /// shrunk since it was opened; warns once if it was written to.
  void read(std::int64_t first, std::int64_t count, std::int64_t* out) const;

  /// Returns the first position in [begin, end) whose id is not below `limit`, or -1.
  std::int64_t find_beyond(std::int64_t limit, std::int64_t begin, std::int64_t end) const;

  /// Returns the place of one token for messages: "data/x.bin, token 17 (byte 34)".
  std::string place_of(std::int64_t position) const;

 private:
  /// Reads the tokens as stored.
  void read_stored(std::int64_t first, std::int64_t count, void* bytes) const;

  File file_;
  std::string name_;
  TokenWidth type_;
  std::int64_t begin_;
  std::int64_t size_;
  // true once the warning about a changed file has been logged
  std::shared_ptr<std::atomic<bool>> told_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace zero

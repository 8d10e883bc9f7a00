#pragma once
// TokenFile: a file of little-endian token ids, read where they are wanted: a file that shrinks under a mapping would
// end the process by a signal. No LibTorch.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file.h"

namespace zero {

/// How one id is stored. The value is its width in bytes.
enum class TokenWidth : std::uint8_t { uint16 = 2, uint32 = 4 };

/// "uint16" or "uint32"; InputError otherwise.
TokenWidth token_width_of(const std::string& name);

/// The narrowest type that holds every id below vocab_size.
TokenWidth narrowest_token_width(std::int64_t vocab_size);

/// Where in a file the ids stand.
struct TokenSection {
  std::int64_t begin = 0;    // in bytes
  std::int64_t tokens = -1;  // -1: up to the file's end
};

/// Reads are thread-safe.
class TokenFile {
 public:
  /// `name` is what messages call the file (a cache goes by its text's name).
  /// InputError when the file is missing, unreadable, empty, or when its size is not a multiple of the width.
  TokenFile(const std::string& path, TokenWidth type, TokenSection section = {}, std::string name = "");

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }  // in tokens
  TokenWidth type() const { return type_; }

  /// out[0 .. count) <- tokens first .. first+count, all of them inside the file. InputError when the file was cut
  /// since it was opened; one that was written to is told of once.
  void read(std::int64_t first, std::int64_t count, std::int64_t* out) const;

  /// The first position in [begin, end) whose id is not below `limit`, or -1.
  std::int64_t find_beyond(std::int64_t limit, std::int64_t begin, std::int64_t end) const;

  /// "data/x.bin, token 17 (byte 34)": the place of one token, for messages.
  std::string place_of(std::int64_t position) const;

 private:
  /// `bytes` <- the tokens as they are stored.
  void read_stored(std::int64_t first, std::int64_t count, void* bytes) const;

  File file_;
  std::string name_;
  TokenWidth type_;
  std::int64_t begin_;
  std::int64_t size_;
  // that the file was written to
  std::shared_ptr<std::atomic<bool>> told_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace zero

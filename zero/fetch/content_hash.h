#pragma once
// ContentHash: the hash by which a hub names a file's content. The bytes may arrive in parts. OpenSSL computes the
// hash, with the processor's SHA instructions.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file_calls.h"
#include "zero/fetch/listing.h"

struct evp_md_ctx_st;

namespace zero {

/// The hash is the SHA-256 of the bytes, or git's SHA-1 of a blob. The latter covers "blob SIZE", a zero byte and the
/// bytes (Pro Git, "Git Objects"). The file's listing says which of the two applies.
class ContentHash {
 public:
  explicit ContentHash(const HubFile& file);

  void add(const void* bytes, std::size_t count);
  /// Adds the first `bytes` bytes of a file. Throws InputError if the file cannot be read or has fewer bytes.
  void add_file(FileCalls& calls, const std::string& path, std::int64_t bytes);
  /// Returns the hash in lower-case hexadecimal, as in HubFile::hash. Nothing may be added afterwards.
  std::string finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace zero

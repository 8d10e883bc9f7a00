#include "zero/fetch/content_hash.h"

#include <openssl/evp.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"

namespace zero {
namespace {

constexpr std::int64_t chunk_bytes = 4 << 20;

}  // namespace

ContentHash::ContentHash(const HubFile& file) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  const EVP_MD* kind = file.has_sha256() ? EVP_sha256() : EVP_sha1();
  ZERO_CHECK(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1, "OpenSSL has no such hash");
  if (file.has_sha256()) return;
  const std::string header = "blob " + std::to_string(file.bytes);
  add(header.c_str(), header.size() + 1);
}

void ContentHash::add(const void* bytes, std::size_t count) {
  ZERO_CHECK(EVP_DigestUpdate(context_.get(), bytes, count) == 1, "a hash failed");
}

void ContentHash::add_file(FileCalls& calls, const std::string& path, std::int64_t bytes) {
  if (bytes == 0) return;
  const File file = File::open(path, calls);
  std::vector<char> chunk(static_cast<std::size_t>(std::min(bytes, chunk_bytes)));
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t count = std::min(chunk_bytes, bytes - done);
    file.read_at(chunk.data(), count, done);
    add(chunk.data(), static_cast<std::size_t>(count));
    done += count;
  }
}

std::string ContentHash::finish() {
  static constexpr char digit[] = "0123456789abcdef";
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  ZERO_CHECK(EVP_DigestFinal_ex(context_.get(), bytes, &count) == 1, "a hash failed");
  std::string words;
  for (unsigned i = 0; i < count; ++i) words += {digit[bytes[i] >> 4], digit[bytes[i] & 15]};
  return words;
}

}  // namespace zero

#include "base/fingerprint.h"

#include <openssl/evp.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/ordered_work.h"

namespace zero {
namespace {

constexpr std::int64_t chunk_bytes = 4 << 20;

struct Span {
  std::int64_t offset = 0, bytes = 0;
};

}  // namespace

Fingerprint fingerprint_of(std::string_view bytes) {
  Fingerprint result;
  ZERO_CHECK(EVP_Digest(bytes.data(), bytes.size(), result.data(), nullptr, EVP_sha256(), nullptr) == 1,
             "SHA-256 failed");
  return result;
}

Fingerprint fingerprint_of_file(const std::string& path, const CoreSet& cores) {
  const File file = File::open(path);
  std::int64_t begun = 0;
  std::string of_chunks;
  work_in_order(
      cores,
      [&]() -> std::optional<Span> {
        if (begun == file.size()) return std::nullopt;
        const Span span{begun, std::min(chunk_bytes, file.size() - begun)};
        begun += span.bytes;
        return span;
      },
      [&](const Span& span) {
        std::string bytes(static_cast<std::size_t>(span.bytes), '\0');
        file.read_at(bytes.data(), span.bytes, span.offset);
        return fingerprint_of(bytes);
      },
      [&](const Fingerprint& chunk) { of_chunks.append(chunk.begin(), chunk.end()); });
  return fingerprint_of(of_chunks);
}

std::string hex(const Fingerprint& fingerprint, std::size_t digits) {
  static constexpr char digit[] = "0123456789abcdef";
  std::string result;
  for (std::size_t i = 0; i < digits; ++i) result += digit[(fingerprint[i / 2] >> (i % 2 ? 0 : 4)) & 15];
  return result;
}

}  // namespace zero

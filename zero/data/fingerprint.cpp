#include "zero/data/fingerprint.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "comm/error.h"
#include "models/file.h"

namespace zero {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    ZERO_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "SHA-256 is not available");
  }
  void add(const void* bytes, std::size_t count) {
    ZERO_CHECK(EVP_DigestUpdate(context_.get(), bytes, count) == 1, "SHA-256 failed");
  }
  Fingerprint finish() {
    Fingerprint result;
    ZERO_CHECK(EVP_DigestFinal_ex(context_.get(), result.data(), nullptr) == 1, "SHA-256 failed");
    return result;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

Fingerprint fingerprint_of(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes.data(), bytes.size());
  return sum.finish();
}

Fingerprint fingerprint_of_file(const std::string& path) {
  const File file = File::open(path);
  std::vector<char> block(1 << 20);
  Sha256 sum;
  for (std::int64_t offset = 0; offset < file.size();) {
    const std::int64_t count = std::min<std::int64_t>(static_cast<std::int64_t>(block.size()), file.size() - offset);
    file.read_at(block.data(), count, offset);
    sum.add(block.data(), static_cast<std::size_t>(count));
    offset += count;
  }
  return sum.finish();
}

std::string hex(const Fingerprint& fingerprint, std::size_t digits) {
  static constexpr char digit[] = "0123456789abcdef";
  std::string result;
  for (std::size_t i = 0; i < digits; ++i) result += digit[(fingerprint[i / 2] >> (i % 2 ? 0 : 4)) & 15];
  return result;
}

}  // namespace zero

#include "base/fingerprint.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace fingerprint_test {

constexpr std::size_t chunk = 4 << 20;

CoreSet three() {
  CoreSet cores;
  cores[0] = cores[1] = cores[2] = true;
  return cores;
}

std::string digest_text(const std::string& bytes) {
  const Fingerprint digest = fingerprint_of(bytes);
  return {digest.begin(), digest.end()};
}

TEST(Fingerprint, IsSha256) {
  EXPECT_EQ(hex(fingerprint_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(fingerprint_of(""), 12), "e3b0c44298fc");
}

TEST(Fingerprint, HashesPiecesLikeTheWholeFile) {
  const TemporaryFolder folder;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, chunk - 1, chunk, chunk + 1, 7 * chunk + 5}) {
    std::string content(bytes, '\0'), chunks;
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 2654435761U >> 13);
    for (std::size_t from = 0; from < bytes; from += chunk) chunks += digest_text(content.substr(from, chunk));
    const std::string path = folder.write("file", content);
    EXPECT_EQ(fingerprint_of_file(path), fingerprint_of(chunks)) << bytes;
    EXPECT_EQ(fingerprint_of_file(path, three()), fingerprint_of(chunks)) << bytes;
  }
  EXPECT_THROW(fingerprint_of_file(folder.path("none")), InputError);
}

}  // namespace fingerprint_test
}  // namespace zero

#include "base/hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace zero {
namespace {

// Files hold these numbers: they are of CRC-32C's definition, taken bit by bit.
TEST(Checksum, IsFourInterleavedStreamsOfCrc32c) {
  std::string bytes(64, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  EXPECT_EQ(linear_checksum(reinterpret_cast<const std::byte*>(bytes.data()), 64), 0xFE366E1F1CD189C5u);
  EXPECT_EQ(checksum(reinterpret_cast<const std::byte*>(bytes.data()), 64), 0x7CC466DF112991F7u);
}

// Weights of ones, or moments of zeros, that a disk gives back as something else.
TEST(Checksum, DiffersForBlocksOfOneValue) {
  const auto filled = [](int value, std::size_t bytes) { return checksum_of(std::string(bytes, char(value))); };
  std::set<std::uint64_t> sums;
  for (int value = 0; value < 256; ++value)
    for (const std::size_t bytes : {32, 4096, 12288}) sums.insert(filled(value, bytes));
  EXPECT_EQ(sums.size(), 3 * 256);
  // The same damage in the first and the third word of a line, or in all of them.
  std::string whole(4096, 'x');
  for (const std::size_t stride : {8, 16}) {
    std::string bad = whole;
    for (std::size_t i = 64; i < 96; i += stride) bad[i] = 'y';
    EXPECT_NE(checksum_of(bad), checksum_of(whole)) << stride;
  }
}

TEST(Checksum, ChangesWithEveryBitAndFillsUpWithZeros) {
  const std::string bytes(40, 'x');
  const std::uint64_t whole = checksum_of(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string other = bytes;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(checksum_of(other), whole) << bit;
  }
  EXPECT_EQ(checksum_of(bytes + std::string(24, '\0')), whole);
}

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesTheValuesOfItsDefinition) {
  std::string rising(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  const std::string falling(rising.rbegin(), rising.rend());
  EXPECT_EQ(crc32c_of(""), 0u);
  EXPECT_EQ(crc32c_of("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c_of(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c_of(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c_of(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c_of(falling), 0x113FDB5Cu);
}

TEST(Fnv1a, GivesTheValuesOfItsAuthorsAndGoesOn) {
  EXPECT_EQ(fnv1a(""), 0xCBF29CE484222325u);
  EXPECT_EQ(fnv1a("a"), 0xAF63DC4C8601EC8Cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171F73967E8u);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

}  // namespace
}  // namespace zero

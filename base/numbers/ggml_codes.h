#pragma once
// The block types of ggml, one struct each, for the CPU and for GPU kernels. A block divides into pieces of 16 values.
// Value i of piece p is scale * code(p, i) - offset, computed in fp32. The product is exact in fp32, so a fused
// multiply-add gives the same bits. nvcc compiles this header as C++17. Source of the layouts: ggml-common.h and
// ggml-quants.c of llama.cpp.
#include <cstdint>
#include <limits>

namespace zero::ggml {

inline constexpr int piece = 16;

struct Scale {
  float scale = 0, offset = 0;
};

/// An fp16 number. Byte by byte, because GPU kernels read blocks at odd addresses. All products are exact.
constexpr float half_at(const std::uint8_t* from) {
  const int bits = from[0] | from[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0 ? static_cast<float>(fraction) * 0x1p-24f
                     : exponent < 31
                         ? static_cast<float>(1024 + fraction) * (static_cast<float>(1 << exponent) * 0x1p-25f)
                     : fraction == 0 ? std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::quiet_NaN();
  return bits & 0x8000 ? -size : size;
}

/// Bit n of 32 little-endian bits.
constexpr int bit_at(const std::uint8_t* from, int n) {
  const std::uint32_t bits =
      static_cast<std::uint32_t>(from[0] | from[1] << 8 | from[2] << 16) | static_cast<std::uint32_t>(from[3]) << 24;
  return static_cast<int>(bits >> n & 1u);
}

/// Codes of piece 0 are in the low halves of 16 bytes, those of piece 1 in the high halves.
constexpr int nibble(const std::uint8_t* bytes, int p, int i) { return bytes[i] >> p * 4 & 15; }

/// 32 signed bytes.
struct Q8_0 {
  static constexpr int values = 32, bytes = 2 + 32;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int p, int i) {
    return static_cast<std::int8_t>(block[2 + p * 16 + i]);
  }
};

struct Q4_0 {
  static constexpr int values = 32, bytes = 2 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int p, int i) { return nibble(block + 2, p, i) - 8; }
};

/// With a minimum, which is added.
struct Q4_1 {
  static constexpr int values = 32, bytes = 2 + 2 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block), -half_at(block + 2)}; }
  static constexpr int code(const std::uint8_t* block, int p, int i) { return nibble(block + 4, p, i); }
};

/// The fifth bits of all values come first.
struct Q5_0 {
  static constexpr int values = 32, bytes = 2 + 4 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int p, int i) {
    return (nibble(block + 6, p, i) | bit_at(block + 2, p * 16 + i) << 4) - 16;
  }
};

struct Q5_1 {
  static constexpr int values = 32, bytes = 2 + 2 + 4 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block), -half_at(block + 2)}; }
  static constexpr int code(const std::uint8_t* block, int p, int i) {
    return nibble(block + 8, p, i) | bit_at(block + 4, p * 16 + i) << 4;
  }
};

/// Two-bit codes: four rows of 32 values, two pieces each, share 32 bytes.
constexpr int two_bits(const std::uint8_t* bytes, int p, int i) {
  return bytes[p / 8 * 32 + p % 2 * 16 + i] >> p / 2 % 4 * 2 & 3;
}
/// Four-bit codes: two rows of 32 values share 32 bytes.
constexpr int four_bits(const std::uint8_t* bytes, int p, int i) {
  return bytes[p / 4 * 32 + p % 2 * 16 + i] >> p / 2 % 2 * 4 & 15;
}

/// A byte holds the scale and the minimum of a piece in four bits each.
struct Q2_K {
  static constexpr int values = 256, bytes = 16 + 64 + 2 + 2;
  static constexpr Scale scale_of(const std::uint8_t* block, int p) {
    return {half_at(block + 80) * static_cast<float>(block[p] & 15),
            half_at(block + 82) * static_cast<float>(block[p] >> 4)};
  }
  static constexpr int code(const std::uint8_t* block, int p, int i) { return two_bits(block + 16, p, i); }
};

/// The third bits come first: bit r of byte i belongs to row r of 32 values. A piece's scale has 6 bits.
struct Q3_K {
  static constexpr int values = 256, bytes = 32 + 64 + 12 + 2;
  static constexpr Scale scale_of(const std::uint8_t* block, int p) {
    const std::uint8_t* scales = block + 96;
    const int low = scales[p % 8] >> p / 8 * 4 & 15, high = scales[8 + p % 4] >> p / 4 * 2 & 3;
    return {half_at(block + 108) * static_cast<float>((low | high << 4) - 32)};
  }
  static constexpr int code(const std::uint8_t* block, int p, int i) {
    const int high = block[p % 2 * 16 + i] >> p / 2 & 1;
    return (two_bits(block + 32, p, i) | high << 2) - 4;
  }
};

/// The scales and minima of Q4_K and Q5_K: 6 bits each in 12 bytes, for rows of 32 values. Those of rows 4 to 7 have
/// their upper two bits above those of rows 0 to 3.
constexpr Scale packed_scale(const std::uint8_t* block, int p) {
  const std::uint8_t* packed = block + 4;
  const int r = p / 2;
  const int scale = r < 4 ? packed[r] & 63 : (packed[r + 4] & 15) | packed[r - 4] >> 6 << 4,
            minimum = r < 4 ? packed[r + 4] & 63 : packed[r + 4] >> 4 | packed[r] >> 6 << 4;
  return {half_at(block) * static_cast<float>(scale), half_at(block + 2) * static_cast<float>(minimum)};
}

struct Q4_K {
  static constexpr int values = 256, bytes = 2 + 2 + 12 + 128;
  static constexpr Scale scale_of(const std::uint8_t* block, int p) { return packed_scale(block, p); }
  static constexpr int code(const std::uint8_t* block, int p, int i) { return four_bits(block + 16, p, i); }
};

/// The fifth bits are 32 bytes: bit r of byte i belongs to row r.
struct Q5_K {
  static constexpr int values = 256, bytes = 2 + 2 + 12 + 32 + 128;
  static constexpr Scale scale_of(const std::uint8_t* block, int p) { return packed_scale(block, p); }
  static constexpr int code(const std::uint8_t* block, int p, int i) {
    return four_bits(block + 48, p, i) | (block[16 + p % 2 * 16 + i] >> p / 2 & 1) << 4;
  }
};

/// Two halves of 128 values are four rows of 32 each, with the low four bits in the first 128 bytes and the high two
/// bits in the next 64. A piece's scale is a signed byte.
struct Q6_K {
  static constexpr int values = 256, bytes = 128 + 64 + 16 + 2;
  static constexpr Scale scale_of(const std::uint8_t* block, int p) {
    return {half_at(block + 208) * static_cast<float>(static_cast<std::int8_t>(block[192 + p]))};
  }
  static constexpr int code(const std::uint8_t* block, int p, int i) {
    const int row = p / 2 % 4, low = block[p / 8 * 64 + row % 2 * 32 + p % 2 * 16 + i] >> row / 2 * 4 & 15;
    return (low | two_bits(block + 128, p, i) << 4) - 32;
  }
};

/// The 16 values of IQ4_NL and IQ4_XS, which lie closer together around zero.
constexpr int uneven(int code) {
  constexpr std::int8_t values[16]{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return values[code];
}

struct IQ4_NL {
  static constexpr int values = 32, bytes = 2 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int p, int i) { return uneven(nibble(block + 2, p, i)); }
};

/// Rows of 32 values with scales of 6 bits: the low four bits in four bytes, the high two in two bytes before them.
struct IQ4_XS {
  static constexpr int values = 256, bytes = 2 + 2 + 4 + 128;
  static constexpr Scale scale_of(const std::uint8_t* block, int p) {
    const int r = p / 2, low = block[4 + r / 2] >> r % 2 * 4 & 15, high = (block[2] | block[3] << 8) >> 2 * r & 3;
    return {half_at(block) * static_cast<float>((low | high << 4) - 32)};
  }
  static constexpr int code(const std::uint8_t* block, int p, int i) {
    return uneven(nibble(block + 8 + p / 2 * 16, p % 2, i));
  }
};

/// Value i of a block.
template <class Type>
constexpr float value_of(const std::uint8_t* block, int i) {
  const Scale of = Type::scale_of(block, i / piece);
  return of.scale * static_cast<float>(Type::code(block, i / piece, i % piece)) - of.offset;
}

}  // namespace zero::ggml

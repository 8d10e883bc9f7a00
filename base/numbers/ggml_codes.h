#pragma once
// The block types of ggml, one struct each, for the CPU and for GPU kernels. A block divides into groups of consecutive
// values: value i of group g is scale * code(g, i) - offset, computed in fp32. The product is exact in fp32, so a fused
// multiply-add gives the same bits. Source of the layouts: ggml-common.h and ggml-quants.c of llama.cpp.
#include <cstdint>

#include "base/numbers/half.h"

namespace zero::ggml {

struct Scale {
  float scale = 0, offset = 0;
};

/// An fp16 number. Byte by byte, because GPU kernels read blocks at odd addresses.
constexpr float half_at(const std::uint8_t* from) {
  return to_float(Fp16{static_cast<std::uint16_t>(from[0] | from[1] << 8)});
}

/// Bit n of little-endian bytes.
constexpr int bit_at(const std::uint8_t* from, int n) { return from[n / 8] >> n % 8 & 1; }

/// 32 signed bytes.
struct Q8_0 {
  static constexpr int values = 32, group = 32, bytes = 2 + 32;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int, int i) { return static_cast<std::int8_t>(block[2 + i]); }
};

/// Value i of 32 is in the low half of byte i, value 16 + i in the high half.
constexpr int nibble(const std::uint8_t* bytes, int i) { return bytes[i % 16] >> i / 16 * 4 & 15; }

struct Q4_0 {
  static constexpr int values = 32, group = 32, bytes = 2 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int, int i) { return nibble(block + 2, i) - 8; }
};

/// With a minimum, which is added.
struct Q4_1 {
  static constexpr int values = 32, group = 32, bytes = 2 + 2 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block), -half_at(block + 2)}; }
  static constexpr int code(const std::uint8_t* block, int, int i) { return nibble(block + 4, i); }
};

/// The fifth bits of all values come first.
struct Q5_0 {
  static constexpr int values = 32, group = 32, bytes = 2 + 4 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int, int i) {
    return (nibble(block + 6, i) | bit_at(block + 2, i) << 4) - 16;
  }
};

struct Q5_1 {
  static constexpr int values = 32, group = 32, bytes = 2 + 2 + 4 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block), -half_at(block + 2)}; }
  static constexpr int code(const std::uint8_t* block, int, int i) {
    return nibble(block + 8, i) | bit_at(block + 4, i) << 4;
  }
};

/// Row r of 32 values in two bits each: four rows share 32 bytes.
constexpr int two_bits(const std::uint8_t* bytes, int r, int i) { return bytes[r / 4 * 32 + i] >> r % 4 * 2 & 3; }
/// Row r of 32 values in four bits each: two rows share 32 bytes.
constexpr int four_bits(const std::uint8_t* bytes, int r, int i) { return bytes[r / 2 * 32 + i] >> r % 2 * 4 & 15; }

/// 16 groups of 16 values. A byte holds a group's scale and minimum in four bits each.
struct Q2_K {
  static constexpr int values = 256, group = 16, bytes = 16 + 64 + 2 + 2;
  static constexpr Scale scale_of(const std::uint8_t* block, int g) {
    return {half_at(block + 80) * static_cast<float>(block[g] & 15),
            half_at(block + 82) * static_cast<float>(block[g] >> 4)};
  }
  static constexpr int code(const std::uint8_t* block, int g, int i) {
    return two_bits(block + 16, g / 2, g % 2 * 16 + i);
  }
};

/// The third bits come first: bit r of byte i belongs to row r. The 16 scales have 6 bits each.
struct Q3_K {
  static constexpr int values = 256, group = 16, bytes = 32 + 64 + 12 + 2;
  static constexpr Scale scale_of(const std::uint8_t* block, int g) {
    const std::uint8_t* scales = block + 96;
    const int low = scales[g % 8] >> g / 8 * 4 & 15, high = scales[8 + g % 4] >> g / 4 * 2 & 3;
    return {half_at(block + 108) * static_cast<float>((low | high << 4) - 32)};
  }
  static constexpr int code(const std::uint8_t* block, int g, int i) {
    const int place = g % 2 * 16 + i, high = block[place] >> g / 2 & 1;
    return (two_bits(block + 32, g / 2, place) | high << 2) - 4;
  }
};

/// The scales and minima of Q4_K and Q5_K, 6 bits each in 12 bytes. Those of groups 4 to 7 have their upper two bits
/// above those of groups 0 to 3.
constexpr Scale packed_scale(const std::uint8_t* block, int g) {
  const std::uint8_t* packed = block + 4;
  const int scale = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4,
            minimum = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
  return {half_at(block) * static_cast<float>(scale), half_at(block + 2) * static_cast<float>(minimum)};
}

struct Q4_K {
  static constexpr int values = 256, group = 32, bytes = 2 + 2 + 12 + 128;
  static constexpr Scale scale_of(const std::uint8_t* block, int g) { return packed_scale(block, g); }
  static constexpr int code(const std::uint8_t* block, int g, int i) { return four_bits(block + 16, g, i); }
};

/// The fifth bits are 32 bytes: bit g of byte i belongs to group g.
struct Q5_K {
  static constexpr int values = 256, group = 32, bytes = 2 + 2 + 12 + 32 + 128;
  static constexpr Scale scale_of(const std::uint8_t* block, int g) { return packed_scale(block, g); }
  static constexpr int code(const std::uint8_t* block, int g, int i) {
    return four_bits(block + 48, g, i) | (block[16 + i] >> g & 1) << 4;
  }
};

/// 16 groups of 16 values with 8-bit scales. Two halves of 128 values are four rows of 32 each, with the low four bits
/// in the first 128 bytes and the high two bits in the next 64.
struct Q6_K {
  static constexpr int values = 256, group = 16, bytes = 128 + 64 + 16 + 2;
  static constexpr Scale scale_of(const std::uint8_t* block, int g) {
    return {half_at(block + 208) * static_cast<float>(static_cast<std::int8_t>(block[192 + g]))};
  }
  static constexpr int code(const std::uint8_t* block, int g, int i) {
    const int half = g / 8, row = g / 2 % 4, place = g % 2 * 16 + i;
    const int low = block[half * 64 + row % 2 * 32 + place] >> row / 2 * 4 & 15;
    return (low | two_bits(block + 128, half * 4 + row, place) << 4) - 32;
  }
};

/// The 16 values of IQ4_NL and IQ4_XS, which lie closer together around zero.
constexpr int uneven(int code) {
  constexpr std::int8_t values[16]{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return values[code];
}

struct IQ4_NL {
  static constexpr int values = 32, group = 32, bytes = 2 + 16;
  static constexpr Scale scale_of(const std::uint8_t* block, int) { return {half_at(block)}; }
  static constexpr int code(const std::uint8_t* block, int, int i) { return uneven(nibble(block + 2, i)); }
};

/// Eight groups with scales of 6 bits: the low four bits in four bytes, the high two in two bytes before them.
struct IQ4_XS {
  static constexpr int values = 256, group = 32, bytes = 2 + 2 + 4 + 128;
  static constexpr Scale scale_of(const std::uint8_t* block, int g) {
    const int low = block[4 + g / 2] >> g % 2 * 4 & 15, high = (block[2] | block[3] << 8) >> 2 * g & 3;
    return {half_at(block) * static_cast<float>((low | high << 4) - 32)};
  }
  static constexpr int code(const std::uint8_t* block, int g, int i) { return uneven(nibble(block + 8 + 16 * g, i)); }
};

/// Value i of a block.
template <class Type>
constexpr float value_of(const std::uint8_t* block, int i) {
  const int g = i / Type::group;
  const Scale scale = Type::scale_of(block, g);
  return scale.scale * static_cast<float>(Type::code(block, g, i % Type::group)) - scale.offset;
}

}  // namespace zero::ggml

#include "base/numbers/ggml_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/numbers/number_types.h"

namespace zero {
namespace {

// Equals std::round. That is a call per value if the compiler must respect rounding modes; this
// vectorises.
float round_half_away(float x) {
  const float size = std::fabs(x), whole = std::floor(size);
  return std::copysign(whole + std::floor(2 * (size - whole)), x);
}

void store_scale(float scale, std::uint8_t* to) {
  const Fp16 stored = rounded<Fp16>(scale);
  std::memcpy(to, &stored, 2);
}

float load_scale(const std::uint8_t* from) {
  Fp16 stored;
  std::memcpy(&stored, from, 2);
  return to_float(stored);
}

void encode_q8(const float* x, std::uint8_t* out) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = largest / 127, inverse = scale != 0 ? 1 / scale : 0;
  store_scale(scale, out);
  for (int i = 0; i < 32; ++i)
    out[2 + i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(round_half_away(x[i] * inverse)));
}

void encode_q4(const float* x, std::uint8_t* out) {
  float largest = 0, signed_largest = 0;
  for (int i = 0; i < 32; ++i)
    if (largest < std::fabs(x[i])) {
      largest = std::fabs(x[i]);
      signed_largest = x[i];
    }
  const float scale = signed_largest / -8, inverse = scale != 0 ? 1 / scale : 0;
  store_scale(scale, out);
  const auto code = [&](float value) { return std::min(15, static_cast<int>(value * inverse + 8.5F)); };
  for (int i = 0; i < 16; ++i) out[2 + i] = static_cast<std::uint8_t>(code(x[i]) | code(x[16 + i]) << 4);
}

template <class T>
void decode_q8(const std::uint8_t* block, T* out) {
  const float scale = load_scale(block);
  for (int i = 0; i < 32; ++i) out[i] = rounded<T>(static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * scale);
}

template <class T>
void decode_q4(const std::uint8_t* block, T* out) {
  const float scale = load_scale(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = rounded<T>(static_cast<float>((block[2 + i] & 15) - 8) * scale);
    out[16 + i] = rounded<T>(static_cast<float>((block[2 + i] >> 4) - 8) * scale);
  }
}

// Two halves of 128 values: four rows of 32, with the low four bits in `low` and the high two in `high`.
template <class T>
void decode_q6(const std::uint8_t* block, T* out) {
  const std::uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float scale = load_scale(block + 208);
  for (int half = 0; half < 2; ++half, low += 64, high += 32, scales += 8, out += 128)
    for (int row = 0; row < 4; ++row)
      for (int i = 0; i < 32; ++i) {
        const int nibble = low[row % 2 * 32 + i] >> (row / 2 * 4) & 15, bits = high[i] >> (2 * row) & 3;
        const float group = static_cast<float>(static_cast<std::int8_t>(scales[2 * row + i / 16]));
        out[32 * row + i] = rounded<T>(scale * group * static_cast<float>((nibble | bits << 4) - 32));
      }
}

template <class T>
auto decoder_of(GgmlType type) -> void (*)(const std::uint8_t*, T*) {
  if (type == GgmlType::q8_0) return decode_q8<T>;
  if (type == GgmlType::q4_0) return decode_q4<T>;
  ZERO_CHECK(type == GgmlType::q6_k, "this type has no blocks");
  return decode_q6<T>;
}

}  // namespace

void encode_blocks(GgmlType type, const float* values, std::int64_t count, std::uint8_t* blocks) {
  ZERO_CHECK(type == GgmlType::q8_0 || type == GgmlType::q4_0, "this type is not written");
  const auto encode = type == GgmlType::q8_0 ? encode_q8 : encode_q4;
  const std::int64_t bytes = ggml_block_bytes(type);
  for (std::int64_t b = 0; b < count / q8_block; ++b) encode(values + b * q8_block, blocks + b * bytes);
}

void decode_blocks(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values) {
  const std::int64_t block = ggml_block(type), bytes = ggml_block_bytes(type);
  with_float_type(number, [&]<class T>(T) {
    const auto decode = decoder_of<T>(type);
    for (std::int64_t b = 0; b < count / block; ++b) decode(blocks + b * bytes, static_cast<T*>(values) + b * block);
  });
}

}  // namespace zero

#include "base/numbers/ggml_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/numbers/ggml_codes.h"
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

// The usual types of frozen bases, in one loop each: about twice as fast as decode().
template <class T>
void decode_q8(const std::uint8_t* block, T* out) {
  const float scale = ggml::half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = rounded<T>(static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * scale);
}

template <class T>
void decode_q4(const std::uint8_t* block, T* out) {
  const float scale = ggml::half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = rounded<T>(static_cast<float>((block[2 + i] & 15) - 8) * scale);
    out[16 + i] = rounded<T>(static_cast<float>((block[2 + i] >> 4) - 8) * scale);
  }
}

// The compiler vectorises each of these loops.
template <class Type, class T>
void decode(const std::uint8_t* block, T* out) {
  constexpr bool is_fp32 = std::is_same_v<T, float>;
  std::array<float, is_fp32 ? 0 : Type::values> unrounded;
  float* values = nullptr;
  if constexpr (is_fp32)
    values = out;
  else
    values = unrounded.data();
  for (int p = 0; p < Type::values / ggml::piece; ++p) {
    const ggml::Scale of = Type::scale_of(block, p);
    for (int i = 0; i < ggml::piece; ++i)
      values[p * ggml::piece + i] = of.scale * static_cast<float>(Type::code(block, p, i)) - of.offset;
  }
  if constexpr (!is_fp32)
    for (int i = 0; i < Type::values; ++i) out[i] = rounded<T>(values[i]);
}

template <class T>
auto decoder_of(GgmlType type) -> void (*)(const std::uint8_t*, T*) {
  if (type == GgmlType::q8_0) return decode_q8<T>;
  if (type == GgmlType::q4_0) return decode_q4<T>;
  switch (type) {
#define BLOCK_TYPE(type, Layout) \
  case GgmlType::type:           \
    return decode<ggml::Layout, T>;
#include "base/numbers/ggml_block_types.inl"
    default:
      throw InternalError("this type has no blocks");
  }
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

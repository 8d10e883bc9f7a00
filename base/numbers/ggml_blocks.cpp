#include "base/numbers/ggml_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/numbers/half.h"

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

}  // namespace

void encode_blocks(GgmlType type, const float* values, std::int64_t count, std::uint8_t* blocks) {
  ZERO_CHECK(type == GgmlType::q8_0 || type == GgmlType::q4_0, "this type is not written");
  const auto encode = type == GgmlType::q8_0 ? encode_q8 : encode_q4;
  const std::int64_t bytes = ggml_block_bytes(type);
  for (std::int64_t b = 0; b < count / q8_block; ++b) encode(values + b * q8_block, blocks + b * bytes);
}

}  // namespace zero

#include "offload/quantized/nf4.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace zero {
namespace {

constexpr std::int64_t grain = 1024;  // blocks

std::uint8_t code_of(float scaled) {
  std::uint8_t code = 0;
  for (int i = 0; i < 15; ++i) code += scaled > (nf4_codes[i] + nf4_codes[i + 1]) / 2;
  return code;
}

void encode_block(const float* values, std::uint8_t* codes, float* largest) {
  float most = 0;
  for (int i = 0; i < nf4_block; ++i) most = std::max(most, std::abs(values[i]));
  *largest = most;
  const float inverse = most > 0 ? 1 / most : 0;
  for (int i = 0; i < nf4_block / 2; ++i)
    codes[i] = std::uint8_t(code_of(values[2 * i] * inverse) << 4 | code_of(values[2 * i + 1] * inverse));
}

template <class T>
void decode_block(const std::uint8_t* codes, const T* table, T* out) {
  for (int i = 0; i < nf4_block / 2; ++i) {
    out[2 * i] = table[codes[i] >> 4];
    out[2 * i + 1] = table[codes[i] & 15];
  }
}

// Two-byte types: the block's 16 values as a table of low and one of high bytes, looked up 32 numbers at a time.
void decode_block_of_halves(const std::uint8_t* codes, const void* table, void* out) {
  const __m256i both = _mm256_loadu_si256(static_cast<const __m256i*>(table));
  const __m256i low_mask = _mm256_set1_epi16(0xFF);
  const __m256i low16 = _mm256_and_si256(both, low_mask), high16 = _mm256_srli_epi16(both, 8);
  const __m128i low = _mm_packus_epi16(_mm256_castsi256_si128(low16), _mm256_extracti128_si256(low16, 1));
  const __m128i high = _mm_packus_epi16(_mm256_castsi256_si128(high16), _mm256_extracti128_si256(high16, 1));
  const __m256i low_bytes = _mm256_broadcastsi128_si256(low), high_bytes = _mm256_broadcastsi128_si256(high);
  const __m256i nibble = _mm256_set1_epi8(15);
  for (int half = 0; half < 2; ++half) {
    const __m256i packed = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + 16 * half)));
    // each 16-bit lane [byte, 0] becomes [high nibble, low nibble]
    const __m256i index =
        _mm256_and_si256(_mm256_or_si256(_mm256_srli_epi16(packed, 4), _mm256_slli_epi16(packed, 8)), nibble);
    const __m256i l = _mm256_shuffle_epi8(low_bytes, index), h = _mm256_shuffle_epi8(high_bytes, index);
    const __m256i first = _mm256_unpacklo_epi8(l, h), second = _mm256_unpackhi_epi8(l, h);
    __m256i* to = static_cast<__m256i*>(out) + 2 * half;
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(first, second, 0x31));
  }
}

}  // namespace

void nf4_encode(const float* values, const Nf4Blocks& out) {
  at::parallel_for(0, out.blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      encode_block(values + b * nf4_block, out.codes + b * nf4_block / 2, out.largest + b);
  });
}

void nf4_decode(const Nf4Blocks& blocks, const at::Tensor& out) {
  TORCH_CHECK(out.is_cpu() && out.is_contiguous() && out.numel() == blocks.blocks * nf4_block,
              "nf4_decode: out does not fit the blocks");
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "nf4_decode", [&] {
    scalar_t* to = out.data_ptr<scalar_t>();
    at::parallel_for(0, blocks.blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        scalar_t table[16];
        for (int i = 0; i < 16; ++i) table[i] = static_cast<scalar_t>(nf4_codes[i] * blocks.largest[b]);
        const std::uint8_t* codes = blocks.codes + b * nf4_block / 2;
        if constexpr (sizeof(scalar_t) == 2)
          decode_block_of_halves(codes, table, to + b * nf4_block);
        else
          decode_block(codes, table, to + b * nf4_block);
      }
    });
  });
}

}  // namespace zero

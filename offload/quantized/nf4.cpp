#include "offload/quantized/nf4.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/numbers/number_types.h"
#include "base/simd/targets.h"

#include <hwy/highway.h>

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

// For two-byte types: the block's 16 values as tables of low and high bytes. Looks up 32 numbers at a time.
void decode_block_of_halves(const std::uint8_t* codes, const void* table, std::uint8_t* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto* values = static_cast<const std::uint8_t*>(table);
  const auto first = hn::LoadU(d, values), last = hn::LoadU(d, values + 16);
  const auto low = hn::ConcatEven(d, last, first), high = hn::ConcatOdd(d, last, first);
  for (int half = 0; half < 2; ++half, codes += 16, out += 64) {
    const auto packed = hn::LoadU(d, codes);
    const auto upper = hn::ShiftRight<4>(packed), lower = hn::And(packed, hn::Set(d, 15));
    const auto write = [&](auto index, std::uint8_t* to) {
      const auto l = hn::TableLookupBytes(low, index), h = hn::TableLookupBytes(high, index);
      hn::StoreU(hn::InterleaveLower(d, l, h), d, to);
      hn::StoreU(hn::InterleaveUpper(d, l, h), d, to + 16);
    };
    write(hn::InterleaveLower(d, upper, lower), out);
    write(hn::InterleaveUpper(d, upper, lower), out + 32);
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
  with_float_type(number_of(out.scalar_type()), [&]<class T>(T) {
    T* to = static_cast<T*>(out.data_ptr());
    at::parallel_for(0, blocks.blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        T table[16];
        for (int i = 0; i < 16; ++i) table[i] = rounded<T>(nf4_codes[i] * blocks.largest[b]);
        const std::uint8_t* codes = blocks.codes + b * nf4_block / 2;
        if constexpr (sizeof(T) == 2)
          decode_block_of_halves(codes, table, reinterpret_cast<std::uint8_t*>(to + b * nf4_block));
        else
          decode_block(codes, table, to + b * nf4_block);
      }
    });
  });
}

}  // namespace zero

#pragma once
// NF4: the four-bit type of QLoRA (Dettmers et al. 2023). Blocks of 64 numbers share their largest absolute value. Each
// number is that value times the nearest of 16 quantiles of a normal distribution. Code book, blocks and packing (the
// first number of a pair in the high half of the byte) are those of bitsandbytes.
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace zero {

inline constexpr std::int64_t nf4_block = 64;            // numbers
inline constexpr std::int64_t nf4_block_bytes = 32 + 4;  // codes and the largest absolute value (fp32)

inline constexpr std::array<float, 16> nf4_codes = {-1.0f,
                                                    -0.6961928009986877f,
                                                    -0.5250730514526367f,
                                                    -0.39491748809814453f,
                                                    -0.28444138169288635f,
                                                    -0.18477343022823334f,
                                                    -0.09105003625154495f,
                                                    0.0f,
                                                    0.07958029955625534f,
                                                    0.16093020141124725f,
                                                    0.24611230194568634f,
                                                    0.33791524171829224f,
                                                    0.44070982933044434f,
                                                    0.5626170039176941f,
                                                    0.7229568362236023f,
                                                    1.0f};

/// A view of blocks: `codes` [32 blocks] bytes and `largest` [blocks].
struct Nf4Blocks {
  std::uint8_t* codes = nullptr;
  float* largest = nullptr;
  std::int64_t blocks = 0;
};

/// Rounds values [64 blocks] to the nearest code. A block of zeros stays zeros.
void nf4_encode(const float* values, const Nf4Blocks& out);

/// Decodes the numbers, rounded once to the type of `out` (fp32, bf16, fp16 or fp64; contiguous, 64 blocks of elements,
/// host memory).
void nf4_decode(const Nf4Blocks& blocks, const at::Tensor& out);

}  // namespace zero

#pragma once
// NF4: QLoRA's four-bit type (Dettmers et al. 2023). Each block of 64 numbers stores its largest absolute value. Each
// number is stored as the nearest of 16 quantiles of a normal distribution, relative to that value. Code book, blocks
// and packing are those of bitsandbytes: the first number of a pair lies in the high half of the byte.
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace zero {

inline constexpr std::int64_t nf4_block = 64;            // numbers per block
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

/// A view of blocks: `codes` has 32 bytes per block, `largest` one number.
struct Nf4Blocks {
  std::uint8_t* codes = nullptr;
  float* largest = nullptr;
  std::int64_t blocks = 0;
};

/// Rounds values [64 blocks] to the nearest codes. A block of zeros decodes to zeros.
void nf4_encode(const float* values, const Nf4Blocks& out);

/// Decodes the numbers and rounds them once to the type of `out`: fp32, bf16, fp16 or fp64. `out` [64 blocks] is
/// contiguous and in host memory.
void nf4_decode(const Nf4Blocks& blocks, const at::Tensor& out);

}  // namespace zero

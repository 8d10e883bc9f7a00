#pragma once
// Nf4Scales: stores the largest value of each NF4 block in 8 bits, as QLoRA's double quantisation does (Dettmers et al.
// 2023). The mean of a tensor's values is subtracted first. A group of 256 consecutive differences stores its largest
// absolute value, and each difference is stored as the nearest entry of bitsandbytes' dynamic map. A number then takes
// 4.127 bits instead of 4.5.
#include <array>
#include <cstdint>

namespace zero {

inline constexpr std::int64_t nf4_scale_group = 256;  // blocks per group

/// The values that a group shares. Every group carries its tensor's mean, so a part of a tensor can be read by itself.
struct Nf4ScaleHeader {
  float largest = 0;  // largest absolute difference from the mean
  float mean = 0;
};

/// The signed 8-bit dynamic map, ascending (Dettmers 2016; create_dynamic_map() of bitsandbytes).
const std::array<float, 256>& dynamic_map();

/// The mean of the largest values of all blocks of a tensor, summed in fp64.
float mean_scale(const float* largest, std::int64_t blocks);

/// The header of one whole group, which has at most nf4_scale_group values.
Nf4ScaleHeader scale_header(const float* largest, std::int64_t blocks, float mean);

/// Encodes the values of one group, or a part of it.
void encode_scales(const float* largest, std::int64_t blocks, const Nf4ScaleHeader& header, std::uint8_t* codes);
void decode_scales(const std::uint8_t* codes, std::int64_t blocks, const Nf4ScaleHeader& header, float* largest);

}  // namespace zero

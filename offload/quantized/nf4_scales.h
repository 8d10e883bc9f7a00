#pragma once
// Nf4Scales: the largest values of NF4 blocks in 8 bits each, QLoRA's double quantisation (Dettmers et al. 2023). A
// tensor's mean is subtracted from its values. 256 consecutive differences share their largest absolute value, and each
// becomes the nearest entry of bitsandbytes' dynamic map. A number then takes 4.127 bits instead of 4.5.
#include <array>
#include <cstdint>

namespace zero {

inline constexpr std::int64_t nf4_scale_group = 256;  // blocks

/// The shared values of a group. Every group carries its tensor's mean, so a part of a tensor can be read alone.
struct Nf4ScaleHeader {
  float largest = 0;  // absolute difference from the mean
  float mean = 0;
};

/// The signed dynamic map of 8 bits, ascending (Dettmers 2016; create_dynamic_map() of bitsandbytes).
const std::array<float, 256>& dynamic_map();

/// The mean of the largest values of all blocks of a tensor. It is summed in fp64, so it does not depend on threads.
float mean_scale(const float* largest, std::int64_t blocks);

/// The header of a whole group's values, at most nf4_scale_group.
Nf4ScaleHeader scale_header(const float* largest, std::int64_t blocks, float mean);

/// Encodes the values of one group, or a part of it.
void encode_scales(const float* largest, std::int64_t blocks, const Nf4ScaleHeader& header, std::uint8_t* codes);
void decode_scales(const std::uint8_t* codes, std::int64_t blocks, const Nf4ScaleHeader& header, float* largest);

}  // namespace zero

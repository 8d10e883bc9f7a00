#include "offload/quantized/nf4_scales.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace zero {
namespace {

// Decade 10^(i-6) holds 2^i numbers of each sign: the midpoints of equal steps from a tenth of the decade to the
// decade.
std::array<float, 256> make_dynamic_map() {
  std::array<float, 256> map{};  // the remaining two: 0 and
  map[255] = 1;
  std::size_t filled = 0;
  for (int i = 0; i < 7; ++i) {
    const at::Tensor ends = at::linspace(0.1, 1, (1 << i) + 1, at::kFloat);
    const at::Tensor middles = (ends.slice(0, 0, -1) + ends.slice(0, 1)) / 2.0 * std::pow(10.0, i - 6);
    for (const float* middle = middles.data_ptr<float>(); middle != middles.data_ptr<float>() + (1 << i); ++middle) {
      map[filled++] = *middle;
      map[filled++] = -*middle;
    }
  }
  std::sort(map.begin(), map.end());
  return map;
}

// Numbers up to each of these map to the entry of the same index.
const std::array<float, 255>& upper_ends() {
  static const std::array<float, 255> ends = [] {
    std::array<float, 255> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = (dynamic_map()[i] + dynamic_map()[i + 1]) / 2;
    return made;
  }();
  return ends;
}

}  // namespace

const std::array<float, 256>& dynamic_map() {
  static const std::array<float, 256> map = make_dynamic_map();
  return map;
}

float mean_scale(const float* largest, std::int64_t blocks) {
  return blocks == 0 ? 0 : float(std::accumulate(largest, largest + blocks, 0.0) / double(blocks));
}

Nf4ScaleHeader scale_header(const float* largest, std::int64_t blocks, float mean) {
  Nf4ScaleHeader header{0, mean};
  for (std::int64_t b = 0; b < blocks; ++b) header.largest = std::max(header.largest, std::abs(largest[b] - mean));
  return header;
}

void encode_scales(const float* largest, std::int64_t blocks, const Nf4ScaleHeader& header, std::uint8_t* codes) {
  const std::array<float, 255>& ends = upper_ends();
  const float inverse = header.largest > 0 ? 1 / header.largest : 0;
  for (std::int64_t b = 0; b < blocks; ++b)
    codes[b] =
        std::uint8_t(std::lower_bound(ends.begin(), ends.end(), (largest[b] - header.mean) * inverse) - ends.begin());
}

void decode_scales(const std::uint8_t* codes, std::int64_t blocks, const Nf4ScaleHeader& header, float* largest) {
  const std::array<float, 256>& map = dynamic_map();
  for (std::int64_t b = 0; b < blocks; ++b) largest[b] = map[codes[b]] * header.largest + header.mean;
}

}  // namespace zero

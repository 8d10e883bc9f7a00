#pragma once
// Encodes and decodes a flat vector with a codec, shard by shard as ranks would.
#include <ATen/ATen.h>

#include <algorithm>

#include "offload/quantized/nf4.h"
#include "zero/core/buffers/nf4_codec.h"

namespace zero {

/// `flat` is encoded in chunks of `chunk` elements. It is on the format's device.
inline at::Tensor encoded_and_decoded(const FlatLayout& layout, int shards, const at::Tensor& flat,
                                      Nf4CodecOptions format, std::int64_t chunk) {
  const Nf4Codec codec(layout, shards, format);
  const at::TensorOptions here = at::TensorOptions().device(flat.device());
  const at::Tensor bytes = at::zeros({codec.all_bytes()}, here.dtype(at::kByte)),
                   largest = at::zeros({layout.numel() / nf4_block}, here.dtype(at::kFloat));
  const std::int64_t numel = layout.numel() / shards, blocks = numel / nf4_block;
  const auto shard_bytes = [&](int s) { return bytes.narrow(0, s * codec.shard_bytes(), codec.shard_bytes()); };
  for (int s = 0; s < shards; ++s)
    for (std::int64_t begin = 0; begin < numel; begin += chunk) {
      const std::int64_t count = std::min(chunk, numel - begin);
      const at::Tensor own = format.quantize_scales ? largest.narrow(0, s * blocks, blocks) : at::Tensor();
      codec.encode(s, begin, flat.narrow(0, s * numel + begin, count), shard_bytes(s), own);
    }
  if (format.quantize_scales)
    for (int s = 0; s < shards; ++s) codec.encode_all_scales(s, largest.to(at::kCPU), shard_bytes(s));
  const at::Tensor full = at::empty({layout.numel()}, here.dtype(format.type));
  codec.decode(bytes, full);
  return full;
}

}  // namespace zero

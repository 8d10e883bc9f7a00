#include "zero/core/buffers/nf4_format.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "offload/quantized/nf4.h"

namespace zero {

// Values are encoded where the bytes are. Scales are gathered on the collectives' device and encoded on the host.
void Nf4Format::encode(const WeightReader& reader, const at::Tensor& rest) const {
  const at::NoGradGuard no_grad;
  const at::Device home = rest.device();
  at::Tensor largest, own, encoded;  // largest values of all shards' blocks, and of this shard's
  if (codec_.quantizes_scales()) {
    const std::int64_t blocks = reader.numel / nf4_block;
    largest = at::zeros({numel_ / nf4_block}, at::TensorOptions().dtype(at::kFloat).device(reader.device));
    own = largest.narrow(0, reader.shard * blocks, blocks);
    encoded = home == reader.device ? own : at::zeros({blocks}, at::kFloat);
  }
  for (std::int64_t begin = 0; begin < reader.numel; begin += encode_chunk) {
    const at::Tensor values = at::empty({std::min(encode_chunk, reader.numel - begin)}, at::kFloat);
    reader.read(begin, values);
    codec_.encode(reader.shard, begin, values.to(home), rest, encoded);
  }
  if (!own.defined()) return;
  if (home != reader.device) own.copy_(encoded);
  reader.gather(largest, own);
  codec_.encode_all_scales(reader.shard, largest.to(at::kCPU), rest);
}

std::int64_t Nf4Format::encode_bytes() const {
  return (encode_chunk + (codec_.quantizes_scales() ? numel_ / nf4_block : 0)) * std::int64_t(sizeof(float));
}

}  // namespace zero

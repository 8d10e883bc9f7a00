#include "zero/core/buffers/wire_format.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace zero {

void PlainFormat::encode(const WeightReader& reader, const at::Tensor& rest) const {
  for (std::int64_t begin = 0; begin < reader.numel; begin += encode_chunk) {
    const at::Tensor values = at::empty({std::min(encode_chunk, reader.numel - begin)}, reader.type);
    reader.read(begin, values);
    rest.narrow(0, begin, values.numel()).copy_(values);
  }
}

}  // namespace zero

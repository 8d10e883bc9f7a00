#include "zero/core/buffers/frozen_format.h"

#include <algorithm>

#include "offload/quantized/nf4.h"
#include "zero/core/buffers/nf4_format.h"

namespace zero {
namespace {

bool is_compute_type(GgmlType type, at::ScalarType compute) {
  return (type == GgmlType::f32 && compute == at::kFloat) || (type == GgmlType::f16 && compute == at::kHalf) ||
         (type == GgmlType::bf16 && compute == at::kBFloat16);
}

}  // namespace

FrozenFormat FrozenFormat::in_8_bits() {
  FrozenFormat format;
  format.ggml_type = [](const TensorSpec&) { return GgmlType::q8_0; };
  return format;
}

std::optional<GgmlType> FrozenFormat::type_of(const TensorSpec& tensor, at::ScalarType compute) const {
  const auto type = ggml_type ? ggml_type(tensor) : std::nullopt;
  if (!type || is_compute_type(*type, compute) || !has_whole_blocks(tensor, *type)) return std::nullopt;
  return type;
}

bool FrozenFormat::changes(const std::vector<std::vector<TensorSpec>>& tensors, at::ScalarType compute) const {
  const auto is_typed = [&](const TensorSpec& tensor) { return type_of(tensor, compute).has_value(); };
  return nf4 || std::any_of(tensors.begin(), tensors.end(), [&](const std::vector<TensorSpec>& parts) {
           return std::any_of(parts.begin(), parts.end(), is_typed);
         });
}

std::int64_t FrozenFormat::alignment() const { return nf4 ? nf4_block : q8_block; }

std::shared_ptr<const WireFormat> FrozenFormat::make(const FlatLayout& layout, int shards, at::ScalarType compute,
                                                     at::Device device) const {
  if (nf4) return std::make_shared<Nf4Format>(layout, shards, Nf4CodecOptions{compute, quantized_scales, device});
  const auto held_in = [&](const TensorSpec& tensor) { return type_of(tensor, compute); };
  return std::make_shared<GgmlFormat>(layout, shards, held_in, compute, device);
}

}  // namespace zero

#include "zero/core/buffers/frozen_format.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "offload/quantized/nf4.h"
#include "zero/core/buffers/nf4_format.h"

namespace zero {
namespace {

bool is_compute_type(GgmlType type, at::ScalarType compute) {
  return (type == GgmlType::f32 && compute == at::kFloat) || (type == GgmlType::f16 && compute == at::kHalf) ||
         (type == GgmlType::bf16 && compute == at::kBFloat16);
}

[[noreturn]] void refuse_cut(const TensorSpec& tensor, std::int64_t block) {
  throw InputError(text(tensor.name, " ", shape_text(tensor.full().shape), ": [parallel] tensor = ",
                        tensor.cut->place.ranks, " cuts it inside a quantized block of ", block, " numbers"));
}

}  // namespace

FrozenFormat FrozenFormat::in_8_bits() {
  FrozenFormat format;
  format.ggml_type = [](const TensorSpec&) { return GgmlType::q8_0; };
  return format;
}

std::optional<GgmlType> FrozenFormat::type_of(const TensorSpec& tensor, at::ScalarType compute) const {
  const auto type = ggml_type ? ggml_type(tensor) : std::nullopt;
  if (!type || is_compute_type(*type, compute)) return std::nullopt;
  if (!has_whole_blocks(tensor, *type)) {
    if (has_whole_blocks(tensor.full(), *type)) refuse_cut(tensor, ggml_block(*type));
    return std::nullopt;
  }
  return type;
}

void FrozenFormat::check_cuts(const std::vector<std::vector<TensorSpec>>& tensors) const {
  if (!nf4) return;
  for (const auto& parts : tensors)
    for (const TensorSpec& tensor : parts) {
      if (!tensor.cut || tensor.shape.size() < 2) continue;
      if (!is_cut_between(tensor, nf4_block)) refuse_cut(tensor, nf4_block);
      if (quantized_scales)
        throw InputError(text("lora.double_quantization: the scales of ", tensor.name,
                              " are quantized in groups over the whole tensor, and [parallel] tensor = ",
                              tensor.cut->place.ranks, " gives each rank a slice"));
    }
}

bool FrozenFormat::changes(const std::vector<std::vector<TensorSpec>>& tensors, at::ScalarType compute) const {
  const auto is_typed = [&](const TensorSpec& tensor) { return type_of(tensor, compute).has_value(); };
  return nf4 || std::any_of(tensors.begin(), tensors.end(), [&](const std::vector<TensorSpec>& parts) {
           return std::any_of(parts.begin(), parts.end(), is_typed);
         });
}

std::int64_t FrozenFormat::alignment(const std::vector<std::vector<TensorSpec>>& tensors,
                                     at::ScalarType compute) const {
  if (nf4) return nf4_block;
  return largest_block(tensors, [&](const TensorSpec& tensor) { return type_of(tensor, compute); });
}

std::shared_ptr<const WireFormat> FrozenFormat::make(const FlatLayout& layout, int shards, at::ScalarType compute,
                                                     at::Device device) const {
  if (nf4) return std::make_shared<Nf4Format>(layout, shards, Nf4CodecOptions{compute, quantized_scales, device});
  const auto held_in = [&](const TensorSpec& tensor) { return type_of(tensor, compute); };
  return std::make_shared<GgmlFormat>(layout, shards, held_in, compute, device);
}

}  // namespace zero

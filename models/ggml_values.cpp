#include "models/ggml_values.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/numbers/decode_blocks.h"
#include "base/numbers/ggml_blocks.h"
#include "base/numbers/number_types.h"

namespace zero {
namespace {

constexpr std::int64_t grain = 1 << 17;  // values

/// LibTorch's type. Block types have none.
std::optional<at::ScalarType> plain_type(GgmlType type) {
  if (type == GgmlType::f32) return at::kFloat;
  if (type == GgmlType::f16) return at::kHalf;
  if (type == GgmlType::bf16) return at::kBFloat16;
  return std::nullopt;
}

/// Calls visit(first value, first byte, values) for parts that are whole blocks.
template <class Visit>
void for_each_part(std::int64_t numel, GgmlType type, const Visit& visit) {
  const std::int64_t block = ggml_block(type), bytes = ggml_block_bytes(type);
  ZERO_CHECK(numel % block == 0, "only whole blocks are converted");
  at::parallel_for(0, numel / block, grain / block, [&](std::int64_t begin, std::int64_t end) {
    visit(begin * block, begin * bytes, (end - begin) * block);
  });
}

/// Decodes to the types of which the kernels know nothing, by way of fp32.
void decode_by_fp32(const std::uint8_t* bytes, GgmlType type, const at::Tensor& out) {
  std::array<float, 4096> values;
  const std::int64_t size = ggml_block_bytes(type), block = ggml_block(type);
  const auto most = static_cast<std::int64_t>(values.size());
  for (std::int64_t done = 0; done < out.numel(); done += most) {
    const std::int64_t part = std::min(most, out.numel() - done);
    decode_blocks(type, bytes + done / block * size, part, Number::fp32, values.data());
    out.narrow(0, done, part).copy_(at::from_blob(values.data(), {part}, at::TensorOptions().dtype(at::kFloat)));
  }
}

}  // namespace

void to_ggml(const at::Tensor& values, GgmlType type, std::uint8_t* bytes) {
  ZERO_CHECK(values.scalar_type() == at::kFloat && values.is_cpu(), "to_ggml takes fp32 on the CPU");
  const at::Tensor flat = values.contiguous().view({-1});
  if (const auto plain = plain_type(type)) {
    at::from_blob(bytes, flat.sizes(), at::TensorOptions().dtype(*plain)).copy_(flat);
    return;
  }
  const float* from = flat.const_data_ptr<float>();
  for_each_part(flat.numel(), type, [&](std::int64_t value, std::int64_t byte, std::int64_t count) {
    encode_blocks(type, from + value, count, bytes + byte);
  });
}

at::Tensor to_ggml(const at::Tensor& values, GgmlType type) {
  const at::Tensor out = at::empty({ggml_bytes(type, values.numel())}, at::kByte);
  to_ggml(values, type, out.mutable_data_ptr<std::uint8_t>());
  return out;
}

void from_ggml(const std::uint8_t* bytes, GgmlType type, const at::Tensor& out) {
  ZERO_CHECK(out.is_cpu() && out.is_contiguous(), "values of ggml go to contiguous tensors of the CPU");
  auto* to = static_cast<std::uint8_t*>(out.data_ptr());
  if (const auto plain = plain_type(type)) {  // a separate tensor: a write through it would bypass the version counter
    const at::Tensor from =
        at::from_blob(const_cast<std::uint8_t*>(bytes), {out.numel()}, at::TensorOptions().dtype(*plain));
    at::from_blob(to, {out.numel()}, at::TensorOptions().dtype(out.scalar_type())).copy_(from);
    return;
  }
  const Number number = number_of(out.scalar_type());
  const auto size = static_cast<std::int64_t>(out.element_size());
  for_each_part(out.numel(), type, [&](std::int64_t value, std::int64_t byte, std::int64_t count) {
    std::uint8_t* part = to + value * size;
    if (number == Number::fp32 || number == Number::bf16)
      decode_blocks(type, bytes + byte, count, number, part);
    else
      decode_by_fp32(bytes + byte, type, at::from_blob(part, {count}, out.options()));
  });
}

}  // namespace zero

#include "models/formats/ggml_type.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::int64_t q8_bytes = q8_block + 2;

struct NamedType {
  const char* name;
  GgmlType type;
};
constexpr NamedType types[] = {
    {"F32", GgmlType::f32}, {"F16", GgmlType::f16}, {"BF16", GgmlType::bf16}, {"Q8_0", GgmlType::q8_0}};

// std::round is a call for every value where the compiler must heed rounding modes; this is the same and becomes
// vectors.
float round_half_away(float x) {
  const float size = std::fabs(x), whole = std::floor(size);
  return std::copysign(whole + std::floor(2 * (size - whole)), x);
}

void quantize_block(const float* x, std::uint8_t* out) {
  float largest = 0;
  for (int i = 0; i < q8_block; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = largest / 127, inverse = scale != 0 ? 1 / scale : 0;
  const auto stored = c10::Half(scale).x;
  std::memcpy(out, &stored, 2);
  for (int i = 0; i < q8_block; ++i)
    out[2 + i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(round_half_away(x[i] * inverse)));
}

at::Tensor to_q8(const at::Tensor& values) {
  const at::Tensor out = at::empty({ggml_bytes(GgmlType::q8_0, values.numel())}, at::kByte);
  const float* from = values.const_data_ptr<float>();
  auto* to = out.mutable_data_ptr<std::uint8_t>();
  at::parallel_for(0, values.numel() / q8_block, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block)
      quantize_block(from + block * q8_block, to + block * q8_bytes);
  });
  return out;
}

}  // namespace

GgmlType ggml_type_of(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const auto& known : types)
    if (upper == known.name) return known.type;
  throw InputError(
      text("\"", name, "\" is no type of a GGUF file that is written here; known are F32, F16, BF16 and Q8_0"));
}

const std::vector<std::string>& ggml_type_names() {
  static const std::vector<std::string> names{"F32", "F16", "BF16", "Q8_0"};
  return names;
}

const char* ggml_name(GgmlType type) {
  for (const auto& known : types)
    if (known.type == type) return known.name;
  throw InternalError("unknown ggml type");
}

std::int64_t ggml_bytes(GgmlType type, std::int64_t elements) {
  if (type == GgmlType::f32) return elements * 4;
  if (type != GgmlType::q8_0) return elements * 2;
  ZERO_CHECK(elements % q8_block == 0, text(elements, " values are no whole number of blocks"));
  return elements / q8_block * q8_bytes;
}

at::Tensor to_ggml(const at::Tensor& values, GgmlType type) {
  ZERO_CHECK(values.scalar_type() == at::kFloat && values.device().is_cpu(), "to_ggml takes fp32 on the CPU");
  const at::Tensor flat = values.contiguous().view({-1});
  switch (type) {
    case GgmlType::f32:
      return flat.view(at::kByte);
    case GgmlType::f16:
      return flat.to(at::kHalf).view(at::kByte);
    case GgmlType::bf16:
      return flat.to(at::kBFloat16).view(at::kByte);
    case GgmlType::q8_0:
      return to_q8(flat);
  }
  throw InternalError("unknown ggml type");
}

}  // namespace zero

#include "models/initial_weights.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/philox.h"
#include "models/model.h"

namespace zero {
namespace {

constexpr std::int64_t group_size = 32;
using Group = std::array<F32x8, 4>;

F32x8 to_float(U32x8 x) { return __builtin_convertvector((I32x8)x, F32x8); }  // x < 2^31

/// ln(x) for 0 < x <= 1, with an error of about 1 ulp (the polynomial of Cephes' logf).
F32x8 log_of(F32x8 x) {
  const U32x8 bits = (U32x8)x;
  // mantissa into [sqrt(1/2), sqrt(2)), so that the polynomial is near 0 where x is near 1
  const U32x8 shifted = bits - 0x3F3504F3u;
  const F32x8 exponent = __builtin_convertvector((I32x8)shifted >> 23, F32x8);
  const F32x8 m = (F32x8)((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  F32x8 y = m * 7.0376836292e-2f - 1.1514610310e-1f;
  for (const float c : {1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f, 2.0000714765e-1f,
                        -2.4999993993e-1f, 3.3333331174e-1f})
    y = y * m + c;
  const F32x8 square = m * m;
  y = y * m * square - 2.12194440e-4f * exponent - 0.5f * square;
  return m + y + 0.693359375f * exponent;
}

/// Sine and cosine of 2 pi x / 2^32. The quadrant is found in integers, so the argument is exact.
void sine_cosine(U32x8 x, F32x8& sine, F32x8& cosine) {
  const U32x8 quadrant = (x + 0x20000000u) >> 30;
  const F32x8 angle =
      __builtin_convertvector((I32x8)(x - (quadrant << 30)), F32x8) * 1.4629180792671596e-9f;  // 2 pi / 2^32
  const F32x8 z = angle * angle;
  const F32x8 s = ((z * -1.9515295891e-4f + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * angle + angle;
  const F32x8 c =
      ((z * 2.443315711809948e-5f - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
  const U32x8 swap = (U32x8)((quadrant & 1u) != 0);
  const U32x8 sine_sign = (quadrant & 2u) << 30, cosine_sign = ((quadrant + 1u) & 2u) << 30;
  sine = (F32x8)((((U32x8)c & swap) | ((U32x8)s & ~swap)) ^ sine_sign);
  cosine = (F32x8)((((U32x8)s & swap) | ((U32x8)c & ~swap)) ^ cosine_sign);
}

F32x8 square_root(F32x8 x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 8> d;
  float all[8];
  std::memcpy(all, &x, sizeof all);
  for (std::size_t i = 0; i < 8; i += hn::MaxLanes(d)) hn::StoreU(hn::Sqrt(hn::LoadU(d, all + i)), d, all + i);
  std::memcpy(&x, all, sizeof all);
  return x;
}

/// Converts two words of uniform bits to two independent normal draws.
void box_muller(U32x8 a, U32x8 b, F32x8& first, F32x8& second) {
  const F32x8 uniform =
      (to_float(a >> 16) * 65536.0f + (to_float(a & 0xFFFFu) + 0.5f)) * 2.3283064365386963e-10f;  // (0, 1]
  const F32x8 radius = square_root(log_of(uniform) * -2.0f);
  F32x8 sine, cosine;
  sine_cosine(b, sine, cosine);
  first = radius * cosine;
  second = radius * sine;
}

Group normal_group(const PhiloxKey& key, std::uint64_t group, float scale) {
  const auto words = philox_group(key, group);
  Group out;
  box_muller(words[0], words[1], out[0], out[1]);
  box_muller(words[2], words[3], out[2], out[3]);
  for (auto& lane : out) lane = lane * scale;
  return out;
}

Group uniform_group(const PhiloxKey& key, std::uint64_t group, float scale) {
  const auto words = philox_group(key, group);
  Group out;
  // 24 bits: every value is exact and the largest is still below 1
  for (int i = 0; i < 4; ++i)
    out[i] = __builtin_convertvector((I32x8)words[i] >> 8, F32x8) * 1.1920928955078125e-7f * scale;
  return out;
}

/// Writes groups that lie inside the range in place, and copies the two at its ends.
template <class MakeGroup>
void draw(std::int64_t begin, std::int64_t count, float* out, const MakeGroup& make_group) {
  const std::int64_t end = begin + count;
  at::parallel_for(
      begin / group_size, (end + group_size - 1) / group_size, 4096, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t group = first; group < last; ++group) {
          const Group values = make_group(static_cast<std::uint64_t>(group));
          const std::int64_t from = std::max(begin, group * group_size), to = std::min(end, (group + 1) * group_size);
          if (to - from == group_size)
            std::memcpy(out + (from - begin), values.data(), sizeof values);
          else
            std::memcpy(out + (from - begin),
                        reinterpret_cast<const float*>(values.data()) + (from - group * group_size),
                        static_cast<std::size_t>(to - from) * sizeof(float));
        }
      });
}

void draw_initial(const InitialTensor& tensor, std::uint64_t seed, std::int64_t begin, std::int64_t count, float* out) {
  const auto scale = static_cast<float>(tensor.scale);
  if (tensor.init == Init::normal)
    draw_normal(seed, tensor.tensor.name, begin, count, scale, out);
  else
    draw_uniform(seed, tensor.tensor.name, begin, count, scale, out);
}

std::vector<InitialTensor> initial_tensors(const Model& model) {
  std::vector<InitialTensor> all;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit->parameters())
      for (const auto& chunk : parameter.parts) all.push_back({chunk, parameter.init, parameter.init_scale});
  return all;
}

}  // namespace

void draw_normal(std::uint64_t seed, const std::string& name, std::int64_t begin, std::int64_t count, float scale,
                 float* out) {
  const PhiloxKey key{seed, fnv1a(name)};
  draw(begin, count, out, [&](std::uint64_t group) { return normal_group(key, group, scale); });
}

void draw_uniform(std::uint64_t seed, const std::string& name, std::int64_t begin, std::int64_t count, float scale,
                  float* out) {
  const PhiloxKey key{seed, fnv1a(name)};
  draw(begin, count, out, [&](std::uint64_t group) { return uniform_group(key, group, scale); });
}

RandomWeights::RandomWeights(const std::vector<InitialTensor>& tensors, std::uint64_t seed) : seed_(seed) {
  for (const auto& tensor : tensors)
    ZERO_CHECK(tensors_.emplace(tensor.tensor.name, tensor).second, tensor.tensor.name + " stands twice");
}

RandomWeights::RandomWeights(const Model& model, std::uint64_t seed) : RandomWeights(initial_tensors(model), seed) {}

void RandomWeights::check(const std::vector<TensorSpec>& tensors) {
  for (const auto& tensor : tensors) {
    const auto place = tensors_.find(tensor.name);
    ZERO_CHECK(place != tensors_.end() && place->second.tensor.shape == tensor.shape,
               tensor.name + " has no initial weights of its shape");
  }
}

void RandomWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const auto place = tensors_.find(tensor.name);
  ZERO_CHECK(place != tensors_.end(), tensor.name + " has no initial weights");
  ZERO_CHECK(out.is_contiguous() && out.device().is_cpu() && out.numel() == count,
             "out must be a contiguous CPU tensor of count elements");
  const InitialTensor& initial = place->second;
  if (initial.init == Init::ones || initial.init == Init::zeros) {
    out.fill_(initial.init == Init::ones ? 1.0 : 0.0);
    return;
  }
  if (out.scalar_type() == at::kFloat) return draw_initial(initial, seed_, begin, count, out.data_ptr<float>());
  constexpr std::int64_t chunk = 1 << 18;
  const at::Tensor staging = at::empty({std::min(count, chunk)}, at::kFloat);
  const at::Tensor flat = out.view({-1});
  for (std::int64_t done = 0; done < count; done += chunk) {
    const std::int64_t n = std::min(chunk, count - done);
    draw_initial(initial, seed_, begin + done, n, staging.data_ptr<float>());
    flat.narrow(0, done, n).copy_(staging.narrow(0, 0, n));
  }
}

}  // namespace zero

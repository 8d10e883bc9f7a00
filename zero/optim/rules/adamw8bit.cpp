// AdamW with 8-bit moments (Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization"), with the codes and
// blocks of bitsandbytes. The step is that of torch's AdamW. After the step each moment is rounded to the nearest code.
//
// Blocks count from a tensor's first element, so that states do not depend on ranks and stages. AdamW updates tensors
// with fewer than 4096 elements, as in bitsandbytes. It also updates tensors of a fused parameter that do not begin at
// a block boundary.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers/number_types.h"
#include "offload/quantized/block8.h"
#include "zero/optim/rules/adamw8bit_loop.h"
#include "zero/optim/rules/elementwise.h"

namespace zero {
namespace {

constexpr std::int64_t smallest_tensor = 4096;

/// One moment of one block.
struct BlockOfCodes {
  const Block8Map& map;
  std::uint8_t* codes;
  float* scale;

  void decode(float* values, std::int64_t n) const {
    const float* table = map.codes().data();
    const float factor = *scale;
    for (std::int64_t i = 0; i < n; ++i) values[i] = table[codes[i]] * factor;
  }
  void encode(const float* values, std::int64_t n) const {
    float largest = 0;
    for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(values[i]));
    const float inverse = largest > 0 ? 1 / largest : 0;
    *scale = largest;
    for (std::int64_t i = 0; i < n; ++i) codes[i] = map.nearest(std::min(1.0F, std::max(-1.0F, values[i] * inverse)));
  }
};

template <class S>
void update_block(S* master, const S* gradient, const BlockOfCodes& first, const BlockOfCodes& second, std::int64_t n,
                  const AdamW8bitFactors<S>& c) {
  std::array<float, block8> m, v;
  first.decode(m.data(), n);
  second.decode(v.data(), n);
  for (std::int64_t i = 0; i < n; ++i) {
    const S g = gradient[i] * c.gradient_scale, mean = m[i] + (g - m[i]) * c.one_minus_beta1,
            square = v[i] * c.beta2 + g * g * c.one_minus_beta2;
    master[i] = master[i] * c.keep - mean * c.step_size / (std::sqrt(square) * c.inverse_root_bias2 + c.eps);
    m[i] = float(mean);
    v[i] = float(square);
  }
  first.encode(m.data(), n);
  second.encode(v.data(), n);
}

template <class G, class S>
S widened(G x) {
  if constexpr (std::is_same_v<G, double>)
    return S(x);
  else
    return S(to_float(x));
}

/// An UpdateLoop for masters of type S and any other types. It processes one block after the other.
template <class S>
void update_in_turn(const UpdateSpan& span, const StepFactors& factors, std::int64_t begin, std::int64_t end, bool) {
  const AdamW8bitFactors<S> constants(factors);
  S* master = span.master.data_ptr<S>();
  std::uint8_t *codes1 = span.states[0].data_ptr<std::uint8_t>(), *codes2 = span.states[1].data_ptr<std::uint8_t>();
  float *scales1 = span.states[2].data_ptr<float>(), *scales2 = span.states[3].data_ptr<float>();
  with_float_type(number_of(span.gradient.scalar_type()), [&]<class G>(G) {
    const auto* gradient = static_cast<const G*>(span.gradient.const_data_ptr());
    std::array<S, block8> wide;
    for (std::int64_t at = begin; at < end; at += block8) {
      const std::int64_t count = std::min(block8, end - at), block = at / block8;
      for (std::int64_t i = 0; i < count; ++i) wide[std::size_t(i)] = widened<G, S>(gradient[at + i]);
      update_block(master + at, wide.data(), {signed_map(), codes1 + at, scales1 + block},
                   {unsigned_map(), codes2 + at, scales2 + block}, count, constants);
    }
  });
  if (span.weights.defined())
    span.weights.narrow(0, begin, end - begin).copy_(span.master.narrow(0, begin, end - begin));
}

class AdamW8bit final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;

  bool takes(const TensorTraits& tensor) const override {
    std::int64_t numel = 1;
    for (const std::int64_t size : tensor.shape) numel *= size;
    return numel >= smallest_tensor && tensor.position % block8 == 0;
  }
  std::vector<StateSpec> states(at::ScalarType) const override {
    return {{"exp_avg_codes", at::kByte},
            {"exp_avg_sq_codes", at::kByte},
            {"exp_avg_scales", at::kFloat, block8},
            {"exp_avg_sq_scales", at::kFloat, block8}};
  }
  std::int64_t longest_span(at::DeviceType device) const override {
    return std::int64_t{1} << (device == at::kCPU ? 40 : 22);
  }

 private:
  UpdateLoop loop(const UpdateSpan& span) const override {
    if (const UpdateLoop vectors = adamw8bit_loop(span)) return vectors;
    return span.master.scalar_type() == at::kDouble ? update_in_turn<double> : update_in_turn<float>;
  }
  void update_composed(const UpdateSpan& span, const UpdateContext& context) const override {
    composed_adamw8bit(span, context);
    write_weights(span);
  }
};

}  // namespace

// Blocks are rows, and the last one is padded with zeros.
void composed_adamw8bit(const UpdateSpan& span, const StepFactors& factors) {
  const AdamW8bitFactors<double> c(factors);
  const std::int64_t n = span.master.numel(), blocks = (n + block8 - 1) / block8;
  const auto rows = [&](const at::Tensor& flat, int padding) {
    const at::Tensor whole = at::full({blocks * block8}, padding, flat.options());
    whole.narrow(0, 0, n).copy_(flat);
    return whole.view({blocks, block8});
  };
  const auto table = [&](const auto& values) {
    return at::tensor(at::ArrayRef<float>(values.data(), values.size())).to(span.master.device());
  };
  const auto decoded = [&](const Block8Map& map, int s) {
    const at::Tensor codes = rows(span.states[std::size_t(s)], map.nearest(0)).to(at::kLong).view({-1});
    return table(map.codes()).index_select(0, codes).view({blocks, block8}) *
           span.states[std::size_t(s) + 2].unsqueeze(1);
  };
  const auto encode = [&](const Block8Map& map, const at::Tensor& values, int s) {
    const at::Tensor largest = values.abs().amax(1), inverse = largest.reciprocal().masked_fill(largest == 0, 0);
    const at::Tensor codes = at::bucketize((values * inverse.unsqueeze(1)).clamp(-1, 1), table(map.midpoints()));
    span.states[std::size_t(s)].copy_(codes.to(at::kByte).view({-1}).narrow(0, 0, n));
    span.states[std::size_t(s) + 2].copy_(largest);
  };
  const at::Tensor g = rows(scaled_gradient(span, factors), 0);
  at::Tensor m = decoded(signed_map(), 0).to(g.scalar_type()), v = decoded(unsigned_map(), 1).to(g.scalar_type());
  m = m + (g - m) * c.one_minus_beta1;
  v = v * c.beta2 + g * g * c.one_minus_beta2;
  const at::Tensor step = m * c.step_size / (v.sqrt() * c.inverse_root_bias2 + c.eps);
  span.master.mul_(c.keep).sub_(step.view({-1}).narrow(0, 0, n));
  encode(signed_map(), m.to(at::kFloat), 0);
  encode(unsigned_map(), v.to(at::kFloat), 1);
}

OptimizerRow adamw8bit_row() {
  return {"adamw8bit",
          "AdamW with 8-bit moments as in bitsandbytes, in tensors of 4096 elements or more",
          {"betas", "eps"},
          {{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}, "adamw8bit"},
          [](const OptimizerOptions& o) -> std::unique_ptr<Optimizer> { return std::make_unique<AdamW8bit>(o); }};
}

}  // namespace zero

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/numbers/half.h"
#include "base/numbers/number_types.h"
#include "offload/quantized/block8.h"
#include "tests/unit/simd_targets.h"
#include "tests/unit/wild_values.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

struct Case {
  at::Tensor master, gradient, weights, codes1, codes2, scales1, scales2;

  UpdateSpan span() const { return {master, {codes1, codes2, scales1, scales2}, gradient, weights}; }
  void expect_bits_of(const Case& other, const std::string& what) const {
    EXPECT_TRUE(same_bits(codes1, other.codes1)) << what;
    EXPECT_TRUE(same_bits(codes2, other.codes2)) << what;
    EXPECT_TRUE(same_bits(scales1, other.scales1)) << what;
    EXPECT_TRUE(same_bits(scales2, other.scales2)) << what;
    EXPECT_TRUE(same_numbers(master, other.master)) << what;
    EXPECT_TRUE(!weights.defined() || same_numbers(weights, other.weights)) << what;
  }
  /// Bits, but of NaNs only that they are NaNs.
  static bool same_numbers(const at::Tensor& a, const at::Tensor& b) {
    return same_bits(a.isnan(), b.isnan()) && same_bits(a.masked_fill(a.isnan(), 0), b.masked_fill(b.isnan(), 0));
  }
};

Case with(const at::Tensor& gradient, std::optional<at::ScalarType> weights, bool from_zero = false) {
  const std::int64_t n = gradient.numel(), blocks = (n + block8 - 1) / block8;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const auto codes = [&](int zero) {
    return from_zero ? at::full({n}, zero, at::kByte) : at::randint(256, {n}, generator, at::kByte);
  };
  Case c{wild(n, 1, at::kFloat), gradient, {}, codes(127), codes(0), {}, {}};
  c.scales1 = from_zero ? at::zeros({blocks}) : wild(blocks, 2, at::kFloat).abs();
  c.scales2 = from_zero ? at::zeros({blocks}) : wild(blocks, 3, at::kFloat).abs();
  if (weights) c.weights = at::zeros({n}, *weights);
  return c;
}

void update(const Case& c, const StepFactors& f) {
  optimizer_row("adamw8bit").make({.name = "adamw8bit"})->update(c.span(), UpdateContext{f});
}

void decode_plainly(const Block8Map& map, const at::Tensor& codes, const at::Tensor& scales, std::vector<float>& to) {
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = map.codes()[codes.data_ptr<std::uint8_t>()[i]] * scales.data_ptr<float>()[i / block8];
}

void encode_plainly(const Block8Map& map, const std::vector<float>& from, const at::Tensor& codes,
                    const at::Tensor& scales) {
  for (std::size_t begin = 0; begin < from.size(); begin += block8) {
    const std::size_t end = std::min(from.size(), begin + block8);
    float largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(from[i]));
    const float inverse = largest > 0 ? 1 / largest : 0;
    scales.data_ptr<float>()[begin / block8] = largest;
    const auto middle = map.midpoints();
    for (std::size_t i = begin; i < end; ++i) {
      const float x = std::min(1.0F, std::max(-1.0F, from[i] * inverse));  // of a NaN -1
      const auto code = std::lower_bound(middle.begin(), middle.end(), x) - middle.begin();
      codes.data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(code);
    }
  }
}

/// The rule, one element at a time; codes are searched among all.
void update_plainly(const Case& c, const StepFactors& f) {
  const auto step = static_cast<double>(f.step);
  const auto keep = float(1 - f.lr * f.weight_decay), b1 = float(1 - f.beta1), beta2 = float(f.beta2),
             b2 = float(1 - f.beta2), step_size = float(f.lr / (1 - std::pow(f.beta1, step))),
             inverse_root = float(1 / std::sqrt(1 - std::pow(f.beta2, step))), eps = float(f.eps),
             scale = float(f.gradient_scale);
  const auto n = static_cast<std::size_t>(c.master.numel());
  std::vector<float> m(n), v(n);
  decode_plainly(signed_map(), c.codes1, c.scales1, m);
  decode_plainly(unsigned_map(), c.codes2, c.scales2, v);
  auto* p = c.master.data_ptr<float>();
  with_float_type(number_of(c.gradient.scalar_type()), [&]<class G>(G) {
    if constexpr (!std::is_same_v<G, double>)
      for (std::size_t i = 0; i < n; ++i) {
        const float g = to_float(static_cast<const G*>(c.gradient.const_data_ptr())[i]) * scale;
        m[i] = m[i] + (g - m[i]) * b1;
        v[i] = v[i] * beta2 + g * g * b2;
        p[i] = p[i] * keep - m[i] * step_size / (std::sqrt(v[i]) * inverse_root + eps);
      }
  });
  encode_plainly(signed_map(), m, c.codes1, c.scales1);
  encode_plainly(unsigned_map(), v, c.codes2, c.scales2);
  if (c.weights.defined()) c.weights.copy_(c.master);
}

void expect_same(const std::function<Case()>& make, const StepFactors& f, const std::string& what) {
  const Case expected = make();
  update_plainly(expected, f);
  with_every_simd_target([&](const char* target) {
    const Case got = make();
    update(got, f);
    got.expect_bits_of(expected, what + " " + target);
  });
}

const StepFactors factors{{.lr = 3e-3, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}, 0.37, 5};
const StepFactors only_gradient{{.lr = 1e-3, .weight_decay = 0, .beta1 = 0, .beta2 = 0}};

TEST(AdamW8bitLoop, EveryKindOfProcessorGivesTheRulesBits) {
  for (const std::int64_t n : {1, 255, 256, 4096 + 31, 1000003})
    for (const auto gradient : {at::kFloat, at::kBFloat16, at::kHalf})
      for (const std::optional<at::ScalarType> weights : {std::optional<at::ScalarType>(), std::optional(at::kFloat),
                                                          std::optional(at::kBFloat16), std::optional(at::kHalf)})
        expect_same([&] { return with(wild(n, 4, gradient), weights); }, factors, std::to_string(n));
}

// The first moment is the gradient here, and the second its square: of blocks whose largest number is 1.
TEST(AdamW8bitLoop, NumbersNextToMidpointsHaveTheirCodes) {
  std::vector<float> numbers;
  const auto add = [&](float x) {
    if (numbers.size() % block8 == 0) numbers.push_back(1);
    numbers.push_back(x);
  };
  for (const Block8Map* map : {&signed_map(), &unsigned_map()})
    for (const float middle : map->midpoints())
      for (const float at : {middle, std::sqrt(std::abs(middle))})
        for (const float sign : {1.0F, -1.0F}) {
          float x = at;
          for (int i = 0; i < 4; ++i) x = std::nextafter(x, -2.0F);
          for (int i = 0; i < 9; ++i, x = std::nextafter(x, 2.0F)) add(sign * x);
        }
  for (std::uint32_t bits = 0; bits <= 0x3F800000; bits += 997) {
    add(std::bit_cast<float>(bits));
    add(-std::bit_cast<float>(bits));
  }
  const at::Tensor gradient = at::tensor(numbers);
  expect_same([&] { return with(gradient, {}, true); }, only_gradient, "midpoints");
}

TEST(AdamW8bitLoop, BlocksOfZerosDenormalsAndNoNumbers) {
  for (const float size : {0.0F, 1e-45F, 1e-41F, 2e-39F, 1e-38F, 1e-20F, 1e19F, 3e38F, INFINITY, NAN}) {
    at::Tensor gradient = at::linspace(-1, 1, 3 * block8 + 9) * size;
    gradient[300] = size;
    gradient[301] = NAN;
    expect_same([&] { return with(gradient, at::kBFloat16, true); }, only_gradient, std::to_string(size));
    expect_same([&] { return with(gradient, at::kHalf); }, factors, std::to_string(size));
  }
}

TEST(AdamW8bitLoop, LargeSpansAndThreadsGiveTheSameBits) {
  const std::int64_t n = (std::int64_t{1} << 22) + 13;  // weights are written past the caches
  const auto make = [&] { return with(wild(n, 4, at::kBFloat16), at::kBFloat16); };
  const Case expected = make();
  update_plainly(expected, factors);
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const Case got = make();
    update(got, factors);
    got.expect_bits_of(expected, std::to_string(threads));
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace zero

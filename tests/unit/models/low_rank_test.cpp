// Adapters inside linear(): against finite differences, plain autograd, and PEFT's own numbers.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "models/nn/linear.h"
#include "models/ops/rms_norm.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

using Kind = LinearInput::Kind;

/// A product with two adapters on rows [0, 6) and [10, 16) of 16, and everything that can require a gradient.
struct Product {
  Product(Kind kind, bool residual, bool dora) : kind(kind) {
    x = random({2, 5, kind == Kind::swiglu ? 16 : 8}, 1);
    weight = random({16, 8}, 2);
    norm = 1 + 0.2 * random({8}, 3);
    if (residual) rest = random({2, 5, 16}, 4);
    for (int i = 0; i < 2; ++i) {
      LowRank adapter{random({3, 8}, 5 + 4 * i), random({6, 3}, 6 + 4 * i),
                      dora ? 1 + 0.3 * random({6}, 7 + 4 * i).abs() : at::Tensor()};
      adapter.begin = 10 * i;
      adapter.scale = 0.7;
      adapter.dropout.seed = 11 + i;
      adapter.dropout.sequence = 5;
      adapters.push_back(adapter);
    }
  }

  std::vector<at::Tensor> leaves() {
    std::vector<at::Tensor> all{x};
    if (kind == Kind::rms_norm) all.push_back(norm);
    if (rest.defined()) all.push_back(rest);
    for (LowRank& adapter : adapters) {
      all.insert(all.end(), {adapter.a, adapter.b});
      if (adapter.magnitude.defined()) all.push_back(adapter.magnitude);
    }
    for (at::Tensor& leaf : all) leaf.set_requires_grad(true);
    return all;
  }

  at::Tensor run() const {
    return linear({kind, x, kind == Kind::rms_norm ? norm : at::Tensor(), 1e-5}, weight, rest, adapters);
  }

  /// The same by autograd's own rules; a length is a constant.
  at::Tensor plain() const {
    at::Tensor z = x;
    if (kind == Kind::rms_norm) z = x * (x.square().mean(-1, true) + 1e-5).rsqrt() * norm;
    if (kind == Kind::swiglu) z = at::silu(x.narrow(-1, 0, 8)) * x.narrow(-1, 8, 8);
    std::vector<at::Tensor> columns(16);
    const at::Tensor y = at::matmul(z, weight.t());
    for (int c = 0; c < 16; ++c) columns[c] = y.select(-1, c);
    for (const LowRank& adapter : adapters) {
      const at::Tensor merged = weight.narrow(0, adapter.begin, 6) + adapter.scale * at::mm(adapter.b, adapter.a);
      at::Tensor part = at::matmul(z, merged.t());
      if (adapter.magnitude.defined()) part = part * (adapter.magnitude / merged.detach().square().sum(1).sqrt());
      for (int c = 0; c < 6; ++c) columns[adapter.begin + c] = part.select(-1, c);
    }
    const at::Tensor all = at::stack(columns, -1);
    return rest.defined() ? all + rest : all;
  }

  Kind kind;
  at::Tensor x, weight, norm, rest;
  std::vector<LowRank> adapters;
};

class LowRankInputs : public ::testing::TestWithParam<std::tuple<Kind, bool, bool, bool>> {};

TEST_P(LowRankInputs, EqualPlainAutograd) {
  const auto [kind, residual, dora, trained_weight] = GetParam();
  Product product(kind, residual, dora);
  std::vector<at::Tensor> leaves = product.leaves();
  if (trained_weight) leaves.push_back(product.weight.set_requires_grad(true));
  const at::Tensor dy = random({2, 5, 16}, 30), y = product.run(), want = product.plain();
  EXPECT_LT(deviation(y, want), 1e-13);
  const auto got = torch::autograd::grad({y}, leaves, {dy}), expected = torch::autograd::grad({want}, leaves, {dy});
  for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_LT(deviation(got[i], expected[i]), 1e-12) << "leaf " << i;
}

INSTANTIATE_TEST_SUITE_P(Kinds, LowRankInputs,
                         ::testing::Combine(::testing::Values(Kind::plain, Kind::rms_norm, Kind::swiglu),
                                            ::testing::Bool(), ::testing::Bool(), ::testing::Bool()));

// With dropout there is no other implementation to ask: the masks are the same in every call with the same key.
TEST(LowRank, GradientsAreThoseOfFiniteDifferencesWithDropout) {
  for (const Kind kind : {Kind::plain, Kind::rms_norm, Kind::swiglu}) {
    Product product(kind, true, false);
    for (LowRank& adapter : product.adapters) adapter.dropout.share = 0.4;
    const std::vector<at::Tensor> leaves = product.leaves();
    const at::Tensor dy = random({2, 5, 16}, 31);
    const auto grads = torch::autograd::grad({product.run()}, leaves, {dy});
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const at::Tensor flat = leaves[i].detach().view({-1});
      at::Tensor numeric = at::zeros_like(flat);
      for (std::int64_t e = 0; e < flat.numel(); ++e) {
        const auto at_shift = [&](double shift) {
          const at::NoGradGuard no_grad;
          const at::Tensor old = flat[e].clone();
          flat[e].add_(shift);
          const at::Tensor value = (product.run() * dy).sum();
          flat[e].copy_(old);
          return value;
        };
        numeric[e].copy_((at_shift(1e-5) - at_shift(-1e-5)) / 2e-5);
      }
      EXPECT_LT(deviation(grads[i].reshape({-1}), numeric), 1e-8) << "leaf " << i;
    }
  }
}

TEST(LowRank, DropsAboutItsShareAndKeepsTheMean) {
  const std::int64_t n = 400, in = 50;
  LowRank adapter{at::eye(in, at::kDouble), at::eye(in, at::kDouble), {}};
  adapter.dropout.share = 0.3;
  adapter.dropout.sequence = 20;
  at::Tensor y = at::zeros({n, in}, at::kDouble);
  add_low_rank(adapter, at::ones({n, in}, at::kDouble), at::zeros({in, in}, at::kDouble), y);
  EXPECT_NEAR(y.eq(0).to(at::kDouble).mean().item<double>(), 0.3, 0.015);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.02);
}

TEST(LowRank, DropsTheSameHoweverSequencesAreDivided) {
  const at::Tensor z = random({24, 7}, 1), weight = random({7, 7}, 2);
  LowRank adapter{random({2, 7}, 3), random({7, 2}, 4), {}};
  adapter.dropout.share = 0.5;
  adapter.dropout.sequence = 4;
  adapter.dropout.first_sample = 8;
  at::Tensor whole = at::zeros({24, 7}, at::kDouble), parts = at::zeros_like(whole);
  add_low_rank(adapter, z, weight, whole);
  for (int sample = 0; sample < 6; ++sample) {
    adapter.dropout.first_sample = 8 + sample;
    at::Tensor part = parts.narrow(0, sample * 4, 4);
    add_low_rank(adapter, z.narrow(0, sample * 4, 4), weight, part);
  }
  EXPECT_LT((whole - parts).abs().max().item<double>(), 1e-13);  // products of other sizes round otherwise
}

class LowRankOfPeft : public ::testing::TestWithParam<const char*> {};

// tests/data/peft_linear.safetensors: PEFT 0.21 around one fp64 Linear 6 -> 10, r = 3, lora_alpha = 5.
TEST_P(LowRankOfPeft, GivesItsOutputsAndGradients) {
  const std::string name = GetParam();
  const SafetensorsFile file(std::string(ZERO_TEST_DATA) + "/peft_linear.safetensors");
  const auto read = [&](const std::string& what) { return file.read(name + "." + what); };
  const bool dora = name.starts_with("dora"), rslora = name.ends_with("rslora");
  LowRank adapter{read("a").set_requires_grad(true), read("b").set_requires_grad(true), {}};
  if (dora) adapter.magnitude = read("magnitude").set_requires_grad(true);
  adapter.scale = rslora ? 5 / std::sqrt(3.0) : 5 / 3.0;
  const at::Tensor x = read("x").set_requires_grad(true), weight = read("weight");
  const at::Tensor y = linear(LinearInput::plain(x), weight, {}, {adapter});
  EXPECT_LT(deviation(y, read("y")), 1e-12);
  std::vector<at::Tensor> leaves{x, adapter.a, adapter.b};
  std::vector<std::string> names{"grad_x", "grad_a", "grad_b"};
  if (dora) {
    leaves.push_back(adapter.magnitude);
    names.push_back("grad_magnitude");
    const LowRank fresh{at::zeros({3, 6}, at::kDouble), at::zeros({10, 3}, at::kDouble), {}};
    EXPECT_LT(deviation(row_lengths(fresh, weight), read("start_magnitude")), 1e-12);
  }
  const auto grads = torch::autograd::grad({y}, leaves, {read("dy")});
  for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_LT(deviation(grads[i], read(names[i])), 1e-12) << names[i];
}

INSTANTIATE_TEST_SUITE_P(Rules, LowRankOfPeft, ::testing::Values("rslora", "dora", "dora_rslora"));

}  // namespace
}  // namespace zero::test

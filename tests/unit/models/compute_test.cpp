// The decoder's parts: CPU kernels in fp32 and bf16 against LibTorch's operations in fp64, and each function's own
// promises.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <limits>

#include "models/nn/embedding.h"
#include "models/nn/head.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/rms_norm.h"
#include "models/ops/rotary.h"
#include "models/ops/swiglu.h"
#include "tests/unit/models/both_types.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

/// The error that rounding of inputs and result allows, relative to the largest entry.
double allowed(at::ScalarType type) { return type == at::kFloat ? 2e-6 : 6e-3; }

TEST(RmsNorm, KernelsAgreeWithFp64) {
  for (const at::ScalarType type : all_types)
    for (const std::int64_t hidden : {1, 15, 16, 33, 768}) {
      const Both x({5, hidden}, 1, type), weight({hidden}, 2, type), dy({5, hidden}, 3, type);
      const RmsNormed own = rms_norm(x.own, weight.own, 1e-5), exact = rms_norm(x.exact, weight.exact, 1e-5);
      EXPECT_LT(deviation(own.y, exact.y), allowed(type)) << hidden;
      EXPECT_TRUE(rms_norm_again(x.own, weight.own, own.rstd).equal(own.y));
      const auto mine = rms_norm_backward(dy.own, x.own, weight.own, own.rstd, true);
      const auto right = rms_norm_backward(dy.exact, x.exact, weight.exact, exact.rstd, true);
      if (hidden > 1) {
        EXPECT_LT(deviation(mine.x, right.x), allowed(type)) << hidden;
      }
      EXPECT_LT(deviation(mine.weight, right.weight), allowed(type)) << hidden;
      EXPECT_FALSE(rms_norm_backward(dy.own, x.own, weight.own, own.rstd, false).weight.defined());
      const at::Tensor beside = random({5, hidden}, 4, type);
      const auto sum = rms_norm_backward(dy.own, x.own, weight.own, own.rstd, true, beside);
      EXPECT_TRUE(sum.x.equal(mine.x + beside) && sum.weight.equal(mine.weight));
    }
}

TEST(RmsNorm, GradientAgreesWithAutograd) {
  const at::Tensor x = random({4, 7}, 1).set_requires_grad(true), weight = random({7}, 2).set_requires_grad(true),
                   dy = random({4, 7}, 3);
  const at::Tensor y = x * (x.square().mean(1, true) + 1e-5).rsqrt() * weight;
  const auto right = torch::autograd::grad({y}, {x, weight}, {dy});
  const at::NoGradGuard no_grad;
  const auto mine = rms_norm_backward(dy, x, weight, rms_norm(x, weight, 1e-5).rstd, true);
  EXPECT_LT(deviation(mine.x, right[0]), 1e-12);
  EXPECT_LT(deviation(mine.weight, right[1]), 1e-12);
}

TEST(Swiglu, KernelsAgreeWithFp64) {
  for (const at::ScalarType type : all_types)
    for (const std::int64_t inner : {1, 16, 21, 172}) {
      const Both gate_up({3, 2 * inner}, 1, type), dy({3, inner}, 2, type);
      EXPECT_LT(deviation(swiglu(gate_up.own), swiglu(gate_up.exact)), allowed(type)) << inner;
      EXPECT_LT(deviation(swiglu_backward(dy.own, gate_up.own), swiglu_backward(dy.exact, gate_up.exact)),
                allowed(type))
          << inner;
    }
}

TEST(Swiglu, GradientAgreesWithAutograd) {
  const at::Tensor gate_up = random({3, 10}, 1).set_requires_grad(true), dy = random({3, 5}, 2);
  const auto halves = gate_up.chunk(2, 1);
  const auto right = torch::autograd::grad({at::silu(halves[0]) * halves[1]}, {gate_up}, {dy});
  EXPECT_LT(deviation(swiglu_backward(dy, gate_up.detach()), right[0]), 1e-12);
}

TEST(Swiglu, KeepsExtremes) {
  for (const at::ScalarType type : all_types) {
    const double huge = 1e30, nan = std::numeric_limits<double>::quiet_NaN();
    const at::Tensor gate_up =
        at::tensor({huge, -huge, 200.0, -200.0, nan, 1.0, 1.0, 2.0, 1.0, 1.0}, at::kDouble).to(type).view({1, 10});
    const at::Tensor y = swiglu(gate_up).to(at::kDouble);
    EXPECT_NEAR(y[0][0].item<double>() / huge, 1, 5e-3);
    EXPECT_NEAR(y[0][2].item<double>(), 400, 1);
    EXPECT_LT(std::abs(y[0][1].item<double>()), 1e-7);
    EXPECT_LT(std::abs(y[0][3].item<double>()), 1e-30);
    EXPECT_TRUE(std::isnan(y[0][4].item<double>()));
  }
}

TEST(CrossEntropy, KernelsAgreeWithFp64) {
  for (const at::ScalarType type : all_types) {
    const Both logits({7, 515}, 1, type);
    const at::Tensor targets = at::randint(515, {7}, at::make_generator<at::CPUGeneratorImpl>(2), at::kLong);
    const CrossEntropy own = cross_entropy(logits.own, targets), exact = cross_entropy(logits.exact, targets);
    EXPECT_LT(deviation(own.loss, exact.loss), 1e-6);
    EXPECT_LT(deviation(own.lse, exact.lse), 1e-6);
    at::Tensor mine = logits.own.clone(), right = logits.exact.clone();
    cross_entropy_backward_(mine, targets, own.lse, at::scalar_tensor(0.25, at::kFloat));
    cross_entropy_backward_(right, targets, exact.lse, at::scalar_tensor(0.25, at::kDouble));
    EXPECT_LT(deviation(mine, right), allowed(type));
    at::Tensor at_once = logits.own.clone();
    const CrossEntropy both = cross_entropy_gradient_(at_once, targets, at::scalar_tensor(0.25, at::kFloat));
    EXPECT_TRUE(both.loss.equal(own.loss) && both.lse.equal(own.lse) && at_once.equal(mine)) << "in one pass";
    at::Tensor precise = logits.exact.clone();
    const CrossEntropy once = cross_entropy_gradient_(precise, targets, at::scalar_tensor(0.25, at::kDouble));
    EXPECT_TRUE(once.loss.equal(exact.loss)) << deviation(once.loss, exact.loss);
    EXPECT_TRUE(precise.equal(right)) << deviation(precise, right);
  }
  EXPECT_ANY_THROW(cross_entropy(random({1, 5}, 1), at::full({1}, 5, at::kLong)));
}

// inv_freq of transformers' LlamaRotaryEmbedding: head_dim 16, theta 1e4, factor 8, old context 1024.
TEST(Rotary, Llama3FrequenciesAreThoseOfTransformers) {
  const Rotary rotary(16, 10000, Llama3Scaling{8, 1, 4, 1024});
  const double right[] = {
      1, 0.316227764, 0.100000001, 0.0316227786, 0.00308676064, 0.000395284733, 0.000125000006, 3.95284733e-05};
  const at::Tensor single = rotary.frequencies(at::kFloat), fine = rotary.frequencies(at::kDouble);
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(single[i].item<double>() / right[i], 1, 1.2e-7) << i;
    EXPECT_NEAR(fine[i].item<double>() / right[i], 1, 2e-6) << i;
  }
}

TEST(Rotary, DefaultFrequenciesAreThoseOfTransformers) {
  const at::Tensor single = Rotary(64, 500000, {}).frequencies(at::kFloat);
  const double right[] = {1, 0.663601279, 0.440366626, 0.292227834, 0.193922758};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(single[i].item<double>() / right[i], 1, 1e-8) << i;
}

struct HeadResult {
  at::Tensor loss;
  std::vector<at::Tensor> grads;
};
at::Tensor cross_entropy_of(const at::Tensor& x, const HeadWeights& weights, const at::Tensor& targets,
                            std::int64_t bytes, double told = 1) {
  const Batch batch{{}, targets, {}, {}};
  ForwardContext context;
  context.batch = &batch;
  context.logits_bytes = bytes;
  context.gradient_scale = told;
  return head_loss(x, weights, context);
}
HeadResult run_head(const at::Tensor& x, const HeadWeights& weights, const at::Tensor& targets, std::int64_t bytes) {
  const at::Tensor leaf = x.detach().clone().set_requires_grad(true),
                   norm = weights.norm.detach().clone().set_requires_grad(true);
  const at::Tensor output = weights.output.detach().clone().set_requires_grad(true);
  const at::Tensor loss = cross_entropy_of(leaf, {norm, output, weights.eps}, targets, bytes);
  return {loss.detach(), torch::autograd::grad({loss * 0.125}, {leaf, norm, output})};
}

TEST(Head, PiecesAndIgnoredTargetsAgreeWithAutograd) {
  const at::Tensor x = random({3, 20, 8}, 1), norm = random({8}, 2), output = random({33, 8}, 3);
  at::Tensor targets = at::randint(33, {3, 20}, at::make_generator<at::CPUGeneratorImpl>(4), at::kLong);
  for (const bool ignored : {false, true}) {
    if (ignored) targets.narrow(1, 3, 7).fill_(ignored_target);
    const at::Tensor leaf = x.clone().set_requires_grad(true), w = norm.clone().set_requires_grad(true),
                     o = output.clone().set_requires_grad(true);
    const at::Tensor normed = leaf * (leaf.square().mean(-1, true) + 1e-5).rsqrt() * w;
    const at::Tensor loss = at::cross_entropy_loss(at::matmul(normed, o.t()).view({60, 33}), targets.view({60}), {},
                                                   at::Reduction::Sum, ignored_target);
    const auto right = torch::autograd::grad({loss * 0.125}, {leaf, w, o});
    for (const std::int64_t bytes : {std::int64_t{1}, default_logits_bytes}) {
      const HeadResult mine = run_head(x, {norm, output, 1e-5}, targets, {bytes});
      EXPECT_LT(deviation(mine.loss, loss), 1e-12);
      for (int i = 0; i < 3; ++i) EXPECT_LT(deviation(mine.grads[i], right[i]), 1e-12) << i << " " << bytes;
    }
  }
}

// Advance information about the loss's gradient changes only rounding, and nothing if it is true.
TEST(Head, TakesAnyGradientOfTheLoss) {
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16})
    for (const std::int64_t bytes : {std::int64_t{1}, default_logits_bytes}) {
      const at::Tensor x = random({3, 20, 8}, 1, type).set_requires_grad(true), norm = random({8}, 2, type),
                       output = random({33, 8}, 3, type).set_requires_grad(true);
      const at::Tensor targets = at::randint(33, {3, 20}, at::make_generator<at::CPUGeneratorImpl>(4), at::kLong);
      const auto run = [&](double told, double brought) {
        const at::Tensor loss = cross_entropy_of(x, {norm, output, 1e-5}, targets, bytes, told);
        return torch::autograd::grad({loss}, {x, output}, {at::full({}, brought, loss.options())});
      };
      const auto right = run(0.3, 0.3), other = run(1, 0.3), untrue = run(0.3, std::nan(""));
      for (std::size_t i = 0; i < right.size(); ++i) {
        EXPECT_LT(deviation(other[i], right[i]), type == at::kDouble ? 1e-12 : 1e-2) << i;
        EXPECT_TRUE(untrue[i].isnan().all().item<bool>()) << i;
      }
    }
}

TEST(Head, CutsTheLogitsIntoPiecesAlike) {
  EXPECT_EQ(logits_chunk_rows(32768, 64000, std::int64_t{1} << 30), 16384);  // not 16777 and 15991
  EXPECT_EQ(logits_chunk_rows(1024, 64000, 32 << 20), 512);
  EXPECT_EQ(logits_chunk_rows(1000, 64000, 32 << 20), 512);
  for (const std::int64_t rows : {0, 1, 5, 127, 128, 129, 1000, 4099})
    for (const std::int64_t bytes : {1, 100, 12800, 40000, 1 << 20}) {
      const std::int64_t chunk = logits_chunk_rows(rows, 100, bytes), most = std::max<std::int64_t>(16, bytes / 100);
      EXPECT_LE(chunk, most) << rows << " " << bytes;
      if (rows > 0) EXPECT_GE(chunk, std::min(rows, most) / 2) << rows << " " << bytes;
      std::int64_t covered = 0;
      for (const std::int64_t number : logits_chunks(at::zeros({rows, 2}), 100, bytes)) covered = number;
      EXPECT_EQ(covered, rows);
    }
}

TEST(Head, PiecesRoundTheWeightsGradientOnceInBfloat) {
  const Both x({4, 50, 32}, 1, at::kBFloat16), norm({32}, 2, at::kBFloat16), output({40, 32}, 3, at::kBFloat16);
  const at::Tensor targets = at::randint(40, {4, 50}, at::make_generator<at::CPUGeneratorImpl>(4), at::kLong);
  const HeadResult exact = run_head(x.exact, {norm.exact, output.exact, 1e-5}, targets, default_logits_bytes);
  const HeadResult whole = run_head(x.own, {norm.own, output.own, 1e-5}, targets, default_logits_bytes);
  const HeadResult chunks = run_head(x.own, {norm.own, output.own, 1e-5}, targets, 1);
  const auto rms = [&](const HeadResult& r) {
    return (r.grads[2].to(at::kDouble) - exact.grads[2]).square().mean().sqrt().item<double>();
  };
  EXPECT_LT(rms(chunks), 1.3 * rms(whole));
}

TEST(Head, NothingToTrainGivesZeros) {
  const HeadResult mine = run_head(random({2, 3, 8}, 1), {random({8}, 2), random({9, 8}, 3), 1e-5},
                                   at::full({2, 3}, ignored_target, at::kLong), 1 << 20);
  EXPECT_EQ(mine.loss.item<double>(), 0);
  for (const at::Tensor& grad : mine.grads) EXPECT_EQ(grad.abs().max().item<double>(), 0);
}

TEST(Head, FrozenOutputGivesTheSameInputGradient) {
  const at::Tensor x = random({2, 20, 8}, 1).set_requires_grad(true), norm = random({8}, 2),
                   output = random({33, 8}, 3);
  const at::Tensor targets = at::randint(33, {2, 20}, at::make_generator<at::CPUGeneratorImpl>(4), at::kLong);
  const HeadResult all = run_head(x, {norm, output, 1e-5}, targets, 1);
  for (const std::int64_t bytes : {std::int64_t{1}, default_logits_bytes}) {
    const at::Tensor grad =
        torch::autograd::grad({cross_entropy_of(x, {norm, output, 1e-5}, targets, bytes) * 0.125}, {x})[0];
    EXPECT_LT(deviation(grad, all.grads[0]), 1e-12);
  }
}

TEST(Embedding, SumsRepeatedRowsInFp32) {
  const at::Tensor weight = at::zeros({5, 2}, at::kBFloat16).set_requires_grad(true);
  const at::Tensor ids = at::full({1, 1000}, 3, at::kLong);
  const at::Tensor grad =
      torch::autograd::grad({embed(ids, weight)}, {weight}, {at::ones({1, 1000, 2}, at::kBFloat16)})[0];
  EXPECT_EQ(grad[3][0].item<double>(), 1000);
  EXPECT_EQ(grad.sum().item<double>(), 2000);
}

}  // namespace
}  // namespace zero::test

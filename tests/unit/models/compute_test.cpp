// The decoder's parts: CPU kernels in fp32 and bf16 against LibTorch's operations in fp64, and each function's own
// promises.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "models/nn/embedding.h"
#include "models/nn/head.h"
#include "models/ops/attention.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/rms_norm.h"
#include "models/ops/rotary.h"
#include "models/ops/swiglu.h"
#include "tests/unit/models/deterministic.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

constexpr at::ScalarType all_types[] = {at::kFloat, at::kBFloat16};

/// The error that rounding of inputs and result allows, relative to the largest entry.
double allowed(at::ScalarType type) { return type == at::kFloat ? 2e-6 : 6e-3; }

/// Values of `type`, and the same values in fp64.
struct Both {
  Both(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type)
      : own(random(shape, seed, type)), exact(own.to(at::kDouble)) {}
  at::Tensor own, exact;
};

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
    EXPECT_TRUE(cross_entropy_gradient_(precise, targets, at::scalar_tensor(0.25, at::kDouble)).loss.equal(exact.loss));
    EXPECT_TRUE(precise.equal(right));
  }
  EXPECT_ANY_THROW(cross_entropy(random({1, 5}, 1), at::full({1}, 5, at::kLong)));
}

struct AttentionCase {
  AttentionShape shape;
  std::int64_t length;
  bool packed;
};

/// Rows of documents of rising lengths, then padding.
Batch packed_batch(std::int64_t length) {
  Batch batch{{}, {}, at::zeros({2, length}, at::kLong), at::full({2, length}, -1, at::kInt)};
  for (int row = 0; row < 2; ++row) {
    int document = 0;
    for (std::int64_t begin = 0, size = 1 + row; begin + size <= length;
         begin += size, size = 2 * size + 1, ++document) {
      batch.documents[row].narrow(0, begin, size).fill_(document);
      batch.positions[row].narrow(0, begin, size).copy_(at::arange(size));
    }
  }
  return batch;
}

struct AttentionResult {
  at::Tensor out, dqkv;
};
AttentionResult run_attention(const AttentionCase& c, const at::Tensor& qkv, const at::Tensor& dout) {
  Rotary rotary(c.shape.head_dim, 10000, {});
  const at::Tensor leaf = qkv.clone().set_requires_grad(true);
  const at::Tensor out = attention(leaf.clone(), c.shape, rotary, c.packed ? packed_batch(c.length) : Batch{});
  return {out.detach(), torch::autograd::grad({out}, {leaf}, {dout})[0]};
}

TEST(Attention, KernelsAgreeWithFp64) {
  const AttentionCase cases[] = {{{4, 2, 16}, 1, false},   {{4, 2, 16}, 24, false},      {{2, 2, 64}, 64, false},
                                 {{3, 1, 64}, 65, false},  {{2, 1, 80}, 130, false},     {{2, 2, 128}, 70, false},
                                 {{1, 1, 256}, 20, false}, {{4, 2, 48}, 200, true},      {{2, 1, 64}, 300, true},
                                 {{2, 1, 8}, 30, true},    {{2, 1, 16}, 2, true},        {{4, 1, 32}, 140, true},
                                 {{2, 1, 96}, 193, false}, {{2, 1, 128, 70}, 260, true}, {{2, 2, 64, 65}, 256, false}};
  for (const at::ScalarType type : all_types)
    for (const AttentionCase& c : cases) {
      const Both qkv({2, c.length, c.shape.qkv_width()}, 1, type),
          dout({2, c.length, c.shape.heads * c.shape.head_dim}, 2, type);
      const AttentionResult own = run_attention(c, qkv.own, dout.own), exact = run_attention(c, qkv.exact, dout.exact);
      const double limit = type == at::kFloat ? 5e-6 : 2e-2;
      EXPECT_LT(deviation(own.out, exact.out), limit) << c.shape.head_dim << " x " << c.length;
      EXPECT_LT(deviation(own.dqkv, exact.dqkv), limit) << c.shape.head_dim << " x " << c.length;
    }
}

TEST(Attention, KeepsNumbersThatAreNone) {
  for (const at::ScalarType type : all_types) {
    const AttentionCase c{{2, 1, 64}, 150, false};
    const at::Tensor qkv = random({2, c.length, c.shape.qkv_width()}, 1, type),
                     dout = random({2, c.length, 128}, 2, type);
    qkv[1][100][0] = std::numeric_limits<double>::quiet_NaN();  // a query of head 0
    const AttentionResult result = run_attention(c, qkv, dout);
    EXPECT_TRUE(result.out[1][100].narrow(0, 0, 64).isnan().all().item<bool>()) << type;
    EXPECT_FALSE(result.out[1].narrow(1, 64, 64).isnan().any().item<bool>()) << type;
    EXPECT_TRUE(result.dqkv[1][99].narrow(0, 128, 64).isnan().all().item<bool>()) << type;
  }
}

TEST(Attention, BfloatErrorIsNoLargerThanLibTorchs) {
  const AttentionCase c{{4, 2, 64}, 256, false};
  const Both qkv({2, c.length, c.shape.qkv_width()}, 1, at::kBFloat16), dout({2, c.length, 4 * 64}, 2, at::kBFloat16);
  const AttentionResult exact = run_attention(c, qkv.exact, dout.exact), own = run_attention(c, qkv.own, dout.own);
  Rotary rotary(64, 10000, {});
  const at::Tensor leaf = qkv.own.clone().set_requires_grad(true);
  const auto parts = leaf.view({2, c.length, 8, 64}).split_with_sizes({4, 2, 2}, 2);
  const Rotary::Table table = rotary.table(c.length, at::kBFloat16, at::kCPU);
  const at::Tensor theirs = at::scaled_dot_product_attention(rotate(parts[0], table, {}).transpose(1, 2),
                                                             rotate(parts[1], table, {}).transpose(1, 2),
                                                             parts[2].transpose(1, 2), {}, 0, true, {}, true)
                                .transpose(1, 2)
                                .reshape({2, c.length, -1});
  const at::Tensor gradient = torch::autograd::grad({theirs}, {leaf}, {dout.own})[0];
  const auto rms = [](const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) - b).square().mean().sqrt().item<double>();
  };
  EXPECT_LT(rms(own.out, exact.out), 1.1 * rms(theirs.detach(), exact.out));
  EXPECT_LT(rms(own.dqkv, exact.dqkv), 1.1 * rms(gradient, exact.dqkv));
}

// Heads that no kernel takes too, and lengths that leave something over.
TEST(Attention, KnowsNoThreadsWhereItIsDeterministic) {
  const Deterministic while_tested;
  const AttentionCase cases[] = {{{2, 1, 8}, 13, false},    {{2, 2, 8}, 24, false},   {{2, 1, 16, 8}, 24, false},
                                 {{4, 2, 16}, 40, false},   {{2, 1, 8, 5}, 40, true}, {{4, 2, 32}, 150, true},
                                 {{3, 3, 40, 7}, 57, true}, {{4, 1, 64}, 130, false}, {{6, 2, 22}, 301, false}};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const AttentionCase& c : cases) {
      const at::Tensor qkv = random({2, c.length, c.shape.qkv_width()}, 1, type),
                       dout = random({2, c.length, c.shape.heads * c.shape.head_dim}, 2, type);
      at::set_num_threads(1);
      const AttentionResult one = run_attention(c, qkv, dout);
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        const AttentionResult again = run_attention(c, qkv, dout);
        SCOPED_TRACE(::testing::Message()
                     << type << ", " << c.shape.head_dim << " x " << c.length << ", " << threads << " threads");
        EXPECT_TRUE(again.out.equal(one.out));
        EXPECT_TRUE(again.dqkv.equal(one.dqkv));
      }
    }
}

TEST(Attention, TakesDocumentsThatComeBack) {
  Batch batch{
      {}, {}, at::tensor({0, 1, 0, 2, 1}, at::kLong).view({1, 5}), at::tensor({0, 0, 1, 0, 1}, at::kInt).view({1, 5})};
  const AttentionShape shape{2, 1, 16};
  Rotary rotary(16, 10000, {});
  const at::Tensor qkv = random({1, 5, shape.qkv_width()}, 1);
  const at::Tensor exact = attention(qkv.clone(), shape, rotary, batch),
                   own = attention(qkv.to(at::kFloat), shape, rotary, batch);
  EXPECT_LT(deviation(own, exact), 5e-6);
}

/// Sizes of the parts of a row: a trunk, its two documents, and padding.
struct TrunkCase {
  std::int64_t trunk, first, second, padding = 0;
  std::int64_t length() const { return trunk + first + second + padding; }
};

Batch with_trunk(const TrunkCase& c) {
  const std::int64_t behind = c.trunk + c.first;
  Batch batch{{}, {}, at::arange(c.length(), at::kLong).view({1, -1}), at::full({1, c.length()}, -1, at::kInt)};
  batch.documents.narrow(1, 0, c.trunk).fill_(trunk_of(0));
  batch.documents.narrow(1, c.trunk, c.first).fill_(0);
  batch.documents.narrow(1, behind, c.second).fill_(1);
  batch.positions.narrow(1, behind, c.second + c.padding).sub_(c.first);
  return batch;
}

AttentionResult attend_to(const at::Tensor& qkv, const at::Tensor& dout, const AttentionShape& shape,
                          const Batch& batch) {
  Rotary rotary(shape.head_dim, 10000, {});
  const at::Tensor leaf = qkv.clone().set_requires_grad(true);
  const at::Tensor out = attention(leaf.clone(), shape, rotary, batch);
  return {out.detach(), torch::autograd::grad({out}, {leaf}, {dout})[0]};
}

/// Computes both documents in rows of their own, each behind its copy of the trunk. The first one's copy takes the
/// trunk's gradient.
AttentionResult attend_apart(const at::Tensor& qkv, const at::Tensor& dout, const AttentionShape& shape,
                             const TrunkCase& c) {
  const std::int64_t whole = c.trunk + c.first;
  const auto second = [&](const at::Tensor& t) {
    return at::cat({t.narrow(1, 0, c.trunk), t.narrow(1, whole, c.second)}, 1);
  };
  at::Tensor its_dout = second(dout).clone();
  its_dout.narrow(1, 0, c.trunk).zero_();
  const AttentionResult a = attend_to(qkv.narrow(1, 0, whole), dout.narrow(1, 0, whole), shape, {}),
                        b = attend_to(second(qkv), its_dout, shape, {});
  AttentionResult both{at::cat({a.out, b.out.narrow(1, c.trunk, c.second)}, 1),
                       at::cat({a.dqkv, b.dqkv.narrow(1, c.trunk, c.second)}, 1)};
  both.dqkv.narrow(1, 0, c.trunk).add_(b.dqkv.narrow(1, 0, c.trunk));
  return both;
}

// Head sizes with and without a kernel; parts that end inside, at and beyond blocks of 64 tokens.
TEST(Attention, BothDocumentsSeeTheirTrunkAndNotEachOther) {
  const TrunkCase cases[] = {{1, 1, 1},    {5, 3, 4, 2},    {64, 64, 64},   {63, 2, 64, 1},
                             {70, 1, 200}, {130, 65, 3, 7}, {10, 200, 130}, {200, 130, 70, 60}};
  for (const AttentionShape& shape : {AttentionShape{4, 2, 64}, AttentionShape{2, 1, 8}, AttentionShape{3, 3, 48}})
    for (const TrunkCase& c : cases) {
      const auto qkv = random({1, c.length(), shape.qkv_width()}, 1),
                 dout = random({1, c.length(), shape.heads * shape.head_dim}, 2);
      const AttentionResult want = attend_apart(qkv, dout, shape, c);
      for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
        SCOPED_TRACE(::testing::Message() << type << ", " << shape.head_dim << " x " << c.length());
        const AttentionResult found = attend_to(qkv.to(type), dout.to(type), shape, with_trunk(c));
        const double limit = type == at::kDouble ? 1e-12 : type == at::kFloat ? 5e-6 : 3e-2;
        const std::int64_t real = c.length() - c.padding;
        EXPECT_LT(deviation(found.out.narrow(1, 0, real), want.out), limit);
        EXPECT_LT(deviation(found.dqkv.narrow(1, 0, real), want.dqkv), limit);
      }
    }
}

// Trunks of two pairs in a row, and rows whose documents no kernel takes.
TEST(Attention, ATrunkBelongsToTwoDocumentsOnly) {
  const AttentionShape shape{2, 1, 16};
  const at::Tensor sees = document_mask(at::tensor({trunk_of(0), 0, 1, trunk_of(2), 2, 3, -1}, at::kInt).view({1, 7}));
  const bool want[7][7] = {
      {1}, {1, 1}, {1, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 0, 1}, {0, 0, 0, 0, 0, 0, 1}};
  for (int q = 0; q < 7; ++q)
    for (int k = 0; k < 7; ++k) EXPECT_EQ(sees[0][0][q][k].item<bool>(), want[q][k]) << q << " sees " << k;
  const std::vector<std::vector<std::int32_t>> rows{{trunk_of(0), 0, 1, trunk_of(2), 2, 3, -1},
                                                    {trunk_of(0), 0, 5, 5, 1, 1, -1},
                                                    {0, trunk_of(0), 1, 1, -1, -1, -1},
                                                    {1, trunk_of(1), trunk_of(1), 2, 2, 1, 1}};
  for (const std::vector<std::int32_t>& numbers : rows) {
    Batch batch{{}, {}, at::arange(7, at::kLong).view({1, 7}), at::tensor(numbers, at::kInt).view({1, 7})};
    const at::Tensor qkv = random({1, 7, shape.qkv_width()}, 1), dout = random({1, 7, 32}, 2);
    const AttentionResult exact = attend_to(qkv, dout, shape, batch),
                          own = attend_to(qkv.to(at::kFloat), dout.to(at::kFloat), shape, batch);
    EXPECT_LT(deviation(own.out, exact.out), 5e-6);
    EXPECT_LT(deviation(own.dqkv, exact.dqkv), 5e-6);
  }
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

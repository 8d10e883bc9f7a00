// The operations as a user's own module meets them: by name through LibTorch's dispatcher, through autograd, on Meta.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/ops/attention.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/dropout.h"
#include "models/ops/embedding_backward.h"
#include "models/ops/head_rows.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"
#include "models/unit.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
using ::testing::HasSubstr;
namespace {

constexpr at::ScalarType wide_types[] = {at::kFloat, at::kDouble};

/// The result of the named operation for boxed arguments.
template <class... Arguments>
std::vector<c10::IValue> call(const std::string& name, Arguments... arguments) {
  std::vector<c10::IValue> stack{c10::IValue(std::move(arguments))...};
  c10::Dispatcher::singleton().findSchemaOrThrow(("zero::" + name).c_str(), "").callBoxed(stack);
  return stack;
}

at::Tensor ids_below(std::int64_t end, at::IntArrayRef shape) {
  return at::randint(end, shape, at::make_generator<at::CPUGeneratorImpl>(7), at::kLong);
}

double tolerance(at::ScalarType type) { return type == at::kDouble ? 1e-9 : 1e-5; }

at::Tensor leaf(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type) {
  return random(shape, seed, type).set_requires_grad(true);
}

/// Gradients by the operation, and by LibTorch's own operations for the same values in fp64.
void expect_same_gradients(const at::Tensor& y, const std::vector<at::Tensor>& leaves, const at::Tensor& want,
                           const std::vector<at::Tensor>& exact, at::ScalarType type) {
  const at::Tensor dy = random(want.sizes(), 20, type);
  const auto mine = torch::autograd::grad({y}, leaves, {dy}),
             right = torch::autograd::grad({want}, exact, {dy.to(want.scalar_type())});
  EXPECT_LT(deviation(y.detach(), want.detach()), tolerance(type));
  for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_LT(deviation(mine[i], right[i]), tolerance(type)) << i;
}

at::Tensor exact_leaf(const at::Tensor& t) { return t.detach().to(at::kDouble).clone().set_requires_grad(true); }

TEST(Operators, ComputeInFp32OrFp64) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    EXPECT_EQ(at::toOpMathType(type), at::kFloat);
  EXPECT_EQ(at::toOpMathType(at::kDouble), at::kDouble);
}

TEST(Operators, RowsByNameAreTheFreeFunctions) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    const at::Tensor x = random({5, 32}, 1, type), weight = random({32}, 2, type), dy = random({5, 32}, 3, type),
                     half = dy.narrow(1, 0, 16).contiguous();
    const RmsNormed normed = rms_norm(x, weight, 1e-5);
    const auto named = call("rms_norm", x, weight, 1e-5);
    EXPECT_TRUE(named[0].toTensor().equal(normed.y));
    EXPECT_TRUE(named[1].toTensor().equal(normed.rstd));
    EXPECT_TRUE(call("rms_norm_again", x, weight, normed.rstd)[0].toTensor().equal(normed.y));
    const RmsNormGradients gradients = rms_norm_backward(dy, x, weight, normed.rstd, true);
    const std::optional<at::Tensor> nothing;
    const auto both = call("rms_norm_backward", dy, x, weight, normed.rstd, true, nothing);
    EXPECT_TRUE(both[0].toTensor().equal(gradients.x));
    EXPECT_TRUE(both[1].toTensor().equal(gradients.weight));
    EXPECT_FALSE(call("rms_norm_backward", dy, x, weight, normed.rstd, false, nothing)[1].toTensor().defined());
    EXPECT_TRUE(call("rms_norm_backward", dy, x, weight, normed.rstd, true, std::optional(dy))[0].toTensor().equal(
        rms_norm_backward(dy, x, weight, normed.rstd, true, dy).x));
    EXPECT_TRUE(call("swiglu", x)[0].toTensor().equal(swiglu(x)));
    EXPECT_TRUE(call("swiglu_backward", half, x)[0].toTensor().equal(swiglu_backward(half, x)));
    Dropout dropout;
    dropout.share = 0.4;
    dropout.seed = 0x9E3779B97F4A7C15ull;
    dropout.sequence = 2;
    const at::Tensor mask = dropout_mask(dropout, x);
    EXPECT_TRUE(call("dropout_mask", x, dropout.share, std::int64_t(dropout.seed), dropout.first_sample,
                     dropout.sequence, dropout.first_row, dropout.first_column)[0]
                    .toTensor()
                    .equal(mask));
    EXPECT_EQ(mask.scalar_type(), type);
    // A part draws what the whole draws there.
    const at::Tensor wide = at::zeros({7, 100}, type), whole = dropout_mask(dropout, wide);
    for (const auto& [row, column] : {std::pair(1, 0), std::pair(2, 32), std::pair(3, 45), std::pair(0, 99)}) {
      dropout.first_row = row;
      dropout.first_column = column;
      const at::Tensor part = wide.narrow(0, row, 7 - row).narrow(1, column, 100 - column);
      EXPECT_TRUE(dropout_mask(dropout, part).equal(whole.narrow(0, row, 7 - row).narrow(1, column, 100 - column)));
    }
  }
}

TEST(Operators, LossAndHeadByNameAreTheFreeFunctions) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    at::Tensor logits = random({6, 40}, 1, type), again = logits.clone(), at_once = logits.clone();
    const at::Tensor targets = ids_below(40, {6});
    const CrossEntropy found = cross_entropy(logits, targets);
    const auto named = call("cross_entropy", logits, targets);
    EXPECT_TRUE(named[0].toTensor().equal(found.loss));
    EXPECT_TRUE(named[1].toTensor().equal(found.lse));
    const at::Tensor scale = at::full({}, 0.25, found.lse.options());
    cross_entropy_backward_(logits, targets, found.lse, scale);
    EXPECT_TRUE(call("cross_entropy_backward_", again, targets, found.lse, scale).empty());
    EXPECT_TRUE(again.equal(logits));
    EXPECT_TRUE(call("cross_entropy_gradient_", at_once, targets, scale)[0].toTensor().equal(found.loss));
    EXPECT_TRUE(at_once.equal(logits));

    const at::Tensor dy = random({6, 8}, 2, type), product = random({6, 5}, 3, type);
    EXPECT_TRUE(call("embedding_backward", dy, targets, 40)[0].toTensor().equal(embedding_backward(dy, targets, 40)));
    at::Tensor sum = at::zeros({8, 5}, at::toOpMathType(type)), other = sum.clone();
    add_product_(sum, dy, product);
    call("add_product_", other, dy, product);
    EXPECT_TRUE(sum.equal(other));
    EXPECT_GT(sum.abs().max().item<double>(), 0);
    const at::Tensor residual = random({8, 5}, 4, type), bias = random({5}, 5, type);
    EXPECT_TRUE(call("matrix_product", dy.t(), product, residual, bias)[0].toTensor().equal(
        matrix_product(dy.t(), product, residual, bias)));

    at::Tensor some = targets.clone();
    EXPECT_FALSE(trained_rows(dy, some, false).defined());
    some[2] = ignored_target;
    EXPECT_TRUE(call("trained_rows", dy, some, false)[0].toTensor().equal(trained_rows(dy, some, false)));
    EXPECT_EQ(trained_rows(dy, some, false).numel(), 5);
    EXPECT_EQ(call("logits_chunks", at::zeros({40, 1}), 100, 1600)[0].toIntVector(),
              (std::vector<std::int64_t>{0, 14, 14, 28, 28, 40}));
  }
}

TEST(Operators, AttentionByNameIsTheFreeFunction) {
  const AttentionShape shape{4, 2, 16};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    Rotary rotary(16, 10000, {});
    const at::Tensor qkv = random({2, 9, shape.qkv_width()}, 1, type);
    Batch batch;
    batch.documents = at::tensor({0, 0, 0, 1, 1, 1, 1, -1, -1}, at::kInt).expand({2, 9}).contiguous();
    batch.positions = at::tensor({0, 1, 2, 0, 1, 2, 3, 0, 0}, at::kLong).expand({2, 9}).contiguous();
    EXPECT_EQ(call("table_rows", qkv, batch.positions)[0].toInt(), 4);
    EXPECT_EQ(call("table_rows", qkv, c10::IValue())[0].toInt(), 9);
    const at::Tensor want = attention(qkv.clone(), shape, rotary, batch);
    const Rotary::Table table = rotary.table(4, type, at::kCPU);
    EXPECT_TRUE(call("attention", qkv.clone(), table.cos, table.sin, batch.positions, batch.documents, c10::IValue(), 0,
                     c10::IValue(), shape.heads, shape.kv_heads, false, 0, 0.0, 0.0, 0, 0, 0)[0]
                    .toTensor()
                    .equal(want));
  }
}

TEST(Operators, RowsPassGradients) {
  for (const at::ScalarType type : wide_types) {
    const at::Tensor x = leaf({6, 33}, 1, type), weight = leaf({33}, 2, type), gate_up = leaf({6, 34}, 3, type),
                     logits = leaf({6, 50}, 4, type), targets = ids_below(50, {6});
    const at::Tensor x64 = exact_leaf(x), weight64 = exact_leaf(weight), gate_up64 = exact_leaf(gate_up),
                     logits64 = exact_leaf(logits);
    expect_same_gradients(rms_norm(x, weight, 1e-5).y, {x, weight},
                          x64 * (x64.square().mean(1, true) + 1e-5).rsqrt() * weight64, {x64, weight64}, type);
    const auto halves = gate_up64.chunk(2, 1);
    expect_same_gradients(swiglu(gate_up), {gate_up}, at::silu(halves[0]) * halves[1], {gate_up64}, type);
    const at::Tensor before = logits.detach().clone();
    expect_same_gradients(cross_entropy(logits, targets).loss, {logits},
                          at::cross_entropy_loss(logits64, targets, {}, at::Reduction::Sum), {logits64}, type);
    EXPECT_TRUE(logits.detach().equal(before));
  }
}

TEST(Operators, GradientsOfPartsAreThoseThatAreWanted) {
  const at::Tensor x = random({4, 16}, 1), weight = leaf({16}, 2, at::kDouble);
  const RmsNormed normed = rms_norm(x, weight, 1e-5);
  EXPECT_TRUE(normed.y.requires_grad());
  EXPECT_FALSE(normed.rstd.requires_grad());
  EXPECT_TRUE(torch::autograd::grad({normed.y.sum()}, {weight})[0].defined());
  // A sum's gradient has strides of zero.
  const at::Tensor gate_up = leaf({4, 16}, 3, at::kFloat);
  EXPECT_TRUE(torch::autograd::grad({swiglu(gate_up).sum()}, {gate_up})[0].is_contiguous());
}

TEST(Operators, AttentionPassesGradients) {
  const AttentionShape shape{4, 2, 16};
  for (const at::ScalarType type : wide_types)
    for (const bool packed : {false, true}) {
      Batch batch;
      if (packed) batch.documents = at::tensor({0, 0, 0, 1, 1, 1, 1}, at::kInt).expand({2, 7}).contiguous();
      const at::Tensor qkv = leaf({2, 7, shape.qkv_width()}, 1, type), qkv64 = exact_leaf(qkv);
      Rotary rotary(16, 10000, {});
      const Rotary::Table table = rotary.table(7, at::kDouble, at::kCPU);
      const auto parts = qkv64.view({2, 7, 8, 16}).split_with_sizes({4, 2, 2}, 2);
      const at::Tensor k = rotate(parts[1], table, {}).repeat_interleave(2, 2), v = parts[2].repeat_interleave(2, 2);
      const at::Tensor scores =
          at::matmul(rotate(parts[0], table, {}).transpose(1, 2), k.transpose(1, 2).transpose(2, 3)) / 4.0;
      const at::Tensor sees = packed ? document_mask(batch.documents) : at::ones({7, 7}, at::kBool).tril();
      const at::Tensor shares =
          scores.masked_fill(sees.logical_not(), -std::numeric_limits<double>::infinity()).softmax(-1);
      const at::Tensor want = at::matmul(shares, v.transpose(1, 2)).transpose(1, 2).reshape({2, 7, 64});
      expect_same_gradients(attention(qkv, shape, rotary, batch), {qkv}, want, {qkv64}, type);
    }
}

TEST(Operators, MakeNoGraphWhereNothingRequiresAGradient) {
  const at::Tensor x = random({4, 16}, 1, at::kFloat), weight = random({16}, 2, at::kFloat),
                   targets = ids_below(16, {4});
  const auto without = [&](const at::Tensor& x, const at::Tensor& weight) {
    const RmsNormed normed = rms_norm(x, weight, 1e-5);
    for (const at::Tensor& t :
         {normed.y, normed.rstd, rms_norm_again(x, weight, normed.rstd), swiglu(x), cross_entropy(x, targets).loss})
      EXPECT_FALSE(t.requires_grad() || t.grad_fn());
  };
  without(x, weight);
  const at::NoGradGuard no_grad;
  without(x.clone().set_requires_grad(true), weight.clone().set_requires_grad(true));
}

/// The exception of the call; empty: none.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Operators, ABackwardPassHasNoGradient) {
  const at::Tensor gate_up = leaf({4, 16}, 1, at::kFloat), dy = random({4, 8}, 2, at::kFloat);
  const at::Tensor found = swiglu_backward(dy, gate_up);
  EXPECT_TRUE(found.requires_grad());
  EXPECT_THAT(message_of([&] { torch::autograd::grad({found.sum()}, {gate_up}); }), HasSubstr("not implemented"));
  at::Tensor logits = leaf({4, 16}, 1, at::kFloat) * 2;
  const at::Tensor targets = ids_below(16, {4}), lse = at::zeros({4}), one = at::ones({});
  EXPECT_THAT(message_of([&] { cross_entropy_backward_(logits, targets, lse, one); }), HasSubstr("has no derivative"));
  EXPECT_THAT(message_of([&] { cross_entropy_gradient_(logits, targets, one); }), HasSubstr("has no derivative"));
}

// x reaches the second derivative through the product too, so that a gradient without a graph would not be noticed.
TEST(Operators, ASecondDerivativeIsRefused) {
  const auto twice = [](const at::Tensor& loss, const at::Tensor& weight) {
    return message_of([&] {
      const at::Tensor g = torch::autograd::grad({loss}, {weight}, {}, true, /*create_graph=*/true)[0];
      torch::autograd::grad({g.square().sum()}, {weight});
    });
  };
  const at::Tensor w = leaf({16, 16}, 1, at::kFloat), x = random({4, 16}, 2, at::kFloat).mm(w);
  EXPECT_THAT(twice(cross_entropy(x, ids_below(16, {4})).loss, w), HasSubstr("no second derivative"));
  EXPECT_THAT(twice(swiglu(x).square().sum(), w), HasSubstr("not implemented"));
  EXPECT_THAT(twice(rms_norm(x, at::ones({16}), 1e-5).y.square().sum(), w), HasSubstr("not implemented"));
}

TEST(Operators, AutogradSeesWritesInPlace) {
  at::Tensor logits = random({4, 16}, 1, at::kFloat);
  const auto before = logits._version();
  cross_entropy_backward_(logits, ids_below(16, {4}), at::zeros({4}), at::ones({}));
  EXPECT_GT(logits._version(), before);
  const auto between = logits._version();
  cross_entropy_gradient_(logits, ids_below(16, {4}), at::ones({}));
  EXPECT_GT(logits._version(), between);
  at::Tensor sum = at::zeros({3, 5});
  add_product_(sum, random({4, 3}, 2, at::kFloat), random({4, 5}, 3, at::kFloat));
  EXPECT_GT(sum._version(), 0);
  const at::Tensor first = leaf({2, 7, 128}, 4, at::kBFloat16), saved = first.tanh();
  Rotary rotary(16, 10000, {});
  const at::Tensor out = attention(saved, {4, 2, 16}, rotary, {});
  if (saved._version() > 0)  // the kernels of AVX512-BF16 work in place
    EXPECT_THAT(message_of([&] { out.sum().backward(); }), HasSubstr("modified by an inplace operation"));
}

TEST(Operators, RefuseShapesThatDoNotFit) {
  const at::Tensor x = random({2, 3, 16}, 1, at::kFloat), rows = x[0];
  EXPECT_ANY_THROW(rms_norm(x, at::ones({16}), 1e-5));
  EXPECT_ANY_THROW(rms_norm(rows, at::ones({15}), 1e-5));
  EXPECT_ANY_THROW(swiglu(x));
  EXPECT_ANY_THROW(swiglu(random({2, 3}, 1, at::kFloat)));
  EXPECT_ANY_THROW(cross_entropy(rows, ids_below(16, {4})));
  EXPECT_ANY_THROW(cross_entropy(rows, at::zeros({3}, at::kInt)));
  EXPECT_ANY_THROW(rms_norm(rows, at::ones({16, 1}), 1e-5));
  EXPECT_ANY_THROW(rms_norm_again(rows, at::ones({16}), at::ones({3}, at::kBFloat16)));
  EXPECT_ANY_THROW(rms_norm(rows, at::empty({16}, at::TensorOptions().device(at::kMeta)), 1e-5));
  EXPECT_ANY_THROW(swiglu_backward(random({8, 4}, 1, at::kFloat), random({4, 16}, 1, at::kFloat)));
  at::Tensor logits = rows.clone();
  EXPECT_ANY_THROW(cross_entropy_backward_(logits, at::full({3}, -100, at::kLong), at::zeros({3}), at::ones({})));
  EXPECT_ANY_THROW(cross_entropy_backward_(logits, ids_below(16, {3}), at::zeros({2}), at::ones({})));
  EXPECT_ANY_THROW(logits_chunks(rows, 0, 0));
  const auto named = c10::Dispatcher::singleton().findSchemaOrThrow("zero::attention", "");
  const at::Tensor qkv = random({1, 3, 64}, 1, at::kFloat), table = at::ones({3, 8});
  const auto call = [&](const at::Tensor& cos, std::int64_t heads) {
    torch::jit::Stack stack{qkv, cos, cos, {}, {}, {}, 0, {}, heads, 1, false, 0, 0.0, 0.0, 0, 0, 0};
    named.callBoxed(stack);
  };
  EXPECT_NO_THROW(call(table, 2));
  EXPECT_ANY_THROW(call(table, 4));
  EXPECT_ANY_THROW(call(table.narrow(0, 0, 2), 2));
  EXPECT_ANY_THROW(call(table.to(at::kDouble), 2));
}

TEST(Operators, TakeRowsOfAnyStrides) {
  const at::Tensor x = random({32, 5}, 1, at::kFloat).t(), weight = random({32}, 2, at::kDouble);
  EXPECT_LT(deviation(rms_norm(x, weight, 1e-5).y, rms_norm(x.contiguous(), weight.to(at::kFloat), 1e-5).y), 1e-6);
  EXPECT_LT(deviation(swiglu(x), swiglu(x.contiguous())), 1e-6);
}

TEST(Operators, HaveShapesAndTypesOnMeta) {
  const auto meta = [](at::IntArrayRef shape, at::ScalarType type) {
    return at::empty(shape, at::TensorOptions().dtype(type).device(at::kMeta));
  };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    const auto expect = [&](const at::Tensor& t, at::IntArrayRef shape, at::ScalarType type) {
      EXPECT_TRUE(t.is_meta());
      EXPECT_EQ(t.sizes(), shape);
      EXPECT_EQ(t.scalar_type(), type);
    };
    const at::ScalarType wide = at::toOpMathType(type);
    const at::Tensor x = meta({6, 32}, type), weight = meta({32}, type), targets = meta({6}, at::kLong);
    const RmsNormed normed = rms_norm(x, weight, 1e-5);
    expect(normed.y, {6, 32}, type);
    expect(normed.rstd, {6}, wide);
    expect(rms_norm_again(x, weight, normed.rstd), {6, 32}, type);
    const RmsNormGradients gradients = rms_norm_backward(x, x, weight, normed.rstd, true);
    expect(gradients.x, {6, 32}, type);
    expect(gradients.weight, {32}, type);
    expect(swiglu(x), {6, 16}, type);
    expect(swiglu_backward(meta({6, 16}, type), x), {6, 32}, type);
    at::Tensor logits = meta({6, 50}, type);
    const CrossEntropy found = cross_entropy(logits, targets);
    expect(found.loss, {}, wide);
    expect(found.lse, {6}, wide);
    cross_entropy_backward_(logits, targets, found.lse, found.loss);
    expect(cross_entropy_gradient_(logits, targets, found.loss).lse, {6}, wide);
    expect(dropout_mask({}, x), {6, 32}, type);
    expect(embedding_backward(x, targets, 50), {50, 32}, type);
    EXPECT_FALSE(trained_rows(x, targets, false).defined());
    expect(trained_rows(x, targets, true), {6}, at::kLong);
    EXPECT_EQ(logits_chunks(meta({100, 1}, type), 100, 1600), (std::vector<std::int64_t>{0, 15, 15, 30, 90, 100}));
    for (const at::DeviceType device : {at::kCPU, at::kCUDA}) {
      const AttentionShape shape{4, 2, 16};
      Rotary rotary(16, 10000, {});
      Batch batch;
      batch.meta.device = device;
      expect(attention(meta({2, 9, shape.qkv_width()}, type), shape, rotary, batch), {2, 9, 64}, type);
    }
  }
}

}  // namespace
}  // namespace zero::test

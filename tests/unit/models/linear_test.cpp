// linear() and its variants: compared with autograd's own rules, and what may be kept.
#include "models/nn/linear.h"

#include <ATen/OpMathType.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "models/gradient_place.h"
#include "models/ops/kernels/tile_matrix.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

using torch::autograd::grad;

struct Operands {
  explicit Operands(at::ScalarType type)
      : x(random({2, 5, 8}, 1, type)),
        norm(random({8}, 2, type)),
        weight(random({6, 8}, 3, type)),
        after(random({2, 5, 8}, 4, type)) {
    for (at::Tensor* each : {&x, &norm, &weight}) each->set_requires_grad(true);
  }
  LinearInput input(bool keep = false) const {
    LinearInput input = LinearInput::rms_norm(x, norm, 1e-5);
    input.keep = keep;
    return input;
  }
  at::Tensor x, norm, weight, after;
};

/// A loss in which y and, in another way, x count.
at::Tensor loss_of(const at::Tensor& y, const at::Tensor& x, const Operands& o) {
  return y.sin().sum() + (x * o.after).sum();
}

TEST(LinearBeside, GivesTheGradientsOfBothUses) {
  const Operands o(at::kDouble);
  const at::Tensor z = o.x * (o.x.square().mean(-1, true) + 1e-5).rsqrt() * o.norm;
  const auto right = grad({loss_of(at::matmul(z, o.weight.t()), o.x, o)}, {o.x, o.norm, o.weight});
  const LinearBeside both = linear_beside(o.input(), o.weight);
  EXPECT_TRUE(both.x.equal(o.x));
  EXPECT_TRUE(both.x.is_alias_of(o.x)) << "it was copied";
  const auto mine = grad({loss_of(both.y, both.x, o)}, {o.x, o.norm, o.weight});
  for (std::size_t i = 0; i < right.size(); ++i) EXPECT_LT(deviation(mine[i], right[i]), 1e-12) << i;
}

// On a CPU each of the two is rounded before they are added, as autograd does it.
TEST(LinearBeside, HasTheBitsOfTwoUses) {
  const Operands o(at::kBFloat16);
  const auto right = grad({loss_of(linear(o.input(), o.weight), o.x, o)}, {o.x, o.norm, o.weight});
  const LinearBeside both = linear_beside(o.input(), o.weight);
  const auto mine = grad({loss_of(both.y, both.x, o)}, {o.x, o.norm, o.weight});
  for (std::size_t i = 0; i < right.size(); ++i) EXPECT_TRUE(mine[i].equal(right[i])) << i;
}

TEST(LinearBeside, OneOfBothMayBeLeftOut) {
  const Operands o(at::kDouble);
  const LinearBeside of_x = linear_beside(o.input(), o.weight), of_y = linear_beside(o.input(), o.weight);
  EXPECT_LT(deviation(grad({(of_x.x * o.after).sum()}, {o.x})[0], o.after), 1e-12);
  EXPECT_LT(deviation(grad({of_y.y.sin().sum()}, {o.x})[0], grad({linear(o.input(), o.weight).sin().sum()}, {o.x})[0]),
            1e-12);
}

TEST(LinearBeside, ReturnsAnInputWithoutGradientItself) {
  const Operands o(at::kDouble);
  LinearInput frozen = o.input();
  frozen.x = o.x.detach();
  const LinearBeside both = linear_beside(frozen, o.weight);
  EXPECT_TRUE(both.x.is_same(frozen.x));
  EXPECT_TRUE(both.y.requires_grad());
  const LinearBeside plain = linear_beside(LinearInput::plain(o.x), o.weight);
  EXPECT_TRUE(plain.x.is_same(o.x));
}

// For a norm, SwiGLU and another activation: the same bits, also if only the input is trained.
TEST(Linear, KeptValuesEqualRecomputedOnes) {
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat, at::kDouble})
    for (const bool frozen : {false, true}) {
      const Operands o(type);
      const at::Tensor half = random({6, 4}, 5, type).set_requires_grad(!frozen);
      const at::Tensor weight = o.weight.detach().clone().set_requires_grad(!frozen);
      const auto gradients = [&](LinearInput input, const at::Tensor& by, bool keep) {
        input.keep = keep;
        const std::vector<at::Tensor> wanted = frozen ? std::vector{o.x} : std::vector{o.x, by};
        return grad({linear(input, by).sin().sum()}, wanted);
      };
      const std::vector<std::pair<LinearInput, at::Tensor>> cases{
          {o.input(), weight},
          {LinearInput::swiglu(o.x), half},
          {LinearInput::activated(o.x, {Activation::gelu, false}), weight},
          {LinearInput::plain(o.x), weight}};
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const auto kept = gradients(cases[i].first, cases[i].second, true),
                   again = gradients(cases[i].first, cases[i].second, false);
        for (std::size_t g = 0; g < kept.size(); ++g) EXPECT_TRUE(kept[g].equal(again[g])) << i << " " << g;
      }
    }
}

/// The matrix products of LibTorch that a call makes on this thread.
int products_of(const std::function<void()>& call) {
  static thread_local int count;
  count = 0;
  const at::CallbackHandle handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        count += std::string(function.name()).find("mm") != std::string::npos;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  call();
  at::removeCallback(handle);
  return count;
}

// The residual, the bias and an adapter have gradients too.
TEST(Linear, AnUnreadResultHasTheSameGradientsWithoutAProduct) {
  const Operands o(at::kDouble);
  const at::Tensor half = random({6, 4}, 5, at::kDouble).set_requires_grad(true),
                   dy = random({2, 5, 6}, 6, at::kDouble),
                   residual = random({2, 5, 6}, 7, at::kDouble).set_requires_grad(true),
                   bias = random({6}, 8, at::kDouble).set_requires_grad(true);
  for (const bool adapted : {false, true})
    for (const bool keep : {false, true})
      for (const auto& [input, weight] :
           {std::pair(LinearInput::swiglu(o.x), half), std::pair(LinearInput::plain(o.x), o.weight)}) {
        std::vector<LowRank> adapters;
        if (adapted)
          adapters.push_back({random({3, weight.size(1)}, 9, at::kDouble).set_requires_grad(true),
                              random({6, 3}, 10, at::kDouble).set_requires_grad(true),
                              {}});
        std::vector<at::Tensor> leaves{o.x, weight, residual, bias};
        for (const LowRank& adapter : adapters) leaves.insert(leaves.end(), {adapter.a, adapter.b});
        const auto run = [&, input = input, weight = weight](bool unread) {
          LinearInput own = input;
          own.keep = keep;
          own.unread = unread;
          return linear(own, weight, residual, adapters, bias);
        };
        const at::Tensor read = run(false);
        at::Tensor unread;
        EXPECT_EQ(products_of([&] { unread = run(true); }), 0);
        EXPECT_GT(products_of([&] { run(false); }), 0);
        EXPECT_EQ(unread.sizes(), read.sizes());
        const auto right = grad({read}, leaves, {dy}), mine = grad({unread}, leaves, {dy});
        for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(mine[i].equal(right[i])) << adapted << keep << i;
      }
}

/// Everything that a product with adapters, bias and residual has gradients for; the weight is the second.
std::vector<at::Tensor> leaves_with(std::vector<LowRank>& adapters, at::ScalarType type, bool dora) {
  std::vector<at::Tensor> leaves{random({2, 5, 8}, 1, type), random({6, 8}, 2, type), random({2, 5, 6}, 3, type),
                                 random({6}, 4, type)};
  LowRank adapter{random({3, 8}, 5, type), random({4, 3}, 6, type), dora ? random({4}, 7, type).abs() : at::Tensor()};
  adapter.begin = 1;
  adapter.dropout.sequence = 5;
  adapters = {adapter};
  leaves.insert(leaves.end(), {adapter.a, adapter.b});
  if (dora) leaves.push_back(adapter.magnitude);
  for (const at::Tensor& leaf : leaves) leaf.set_requires_grad(true);
  return leaves;
}

// Existing contents count or are overwritten, and the next product is added in any case. Other gradients are as usual.
TEST(Linear, WritesToThePlaceOfItsWeightsGradient) {
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat, at::kDouble})
    for (const bool dora : {false, true}) {
      std::vector<LowRank> adapters;
      const std::vector<at::Tensor> leaves = leaves_with(adapters, type, dora);
      const auto gradients = [&] {
        return grad({linear(LinearInput::plain(leaves[0]), leaves[1], leaves[2], adapters, leaves[3]).sin().sum()},
                    leaves, {}, false, false, true);
      };
      const std::vector<at::Tensor> by_autograd = gradients();
      const auto place = GradientPlace::put_on(leaves[1]);
      for (const at::ScalarType sums : {type, at::toOpMathType(type)})
        for (const bool adds : {false, true}) {
          const at::Tensor sum = at::full({6, 8}, adds ? 1 : NAN, sums);
          place->open(sum, adds);
          for (int use = 1; use <= 2; ++use) {
            const std::vector<at::Tensor> found = gradients();
            EXPECT_FALSE(found[1].defined());
            for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(i == 1 || found[i].equal(by_autograd[i])) << i;
            const at::Tensor want = by_autograd[1].to(at::kDouble) * use + double(adds);
            // AMX tiles add what autograd rounds to bf16.
            const bool rounded = sums == at::kBFloat16 || (type == at::kBFloat16 && kernels::has_tile_products());
            EXPECT_LT(deviation(sum, want), rounded ? 1e-2 : sums == at::kFloat ? 1e-6 : 1e-12);
          }
          EXPECT_TRUE(place->close());
          EXPECT_TRUE(gradients()[1].equal(by_autograd[1])) << "it is closed";
          place->open(sum, adds);
          EXPECT_FALSE(place->close()) << "nothing was written since";
        }
    }
}

// A rank without rows.
TEST(Linear, OverwritesByZerosForNoRows) {
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
    const at::Tensor weight = random({6, 8}, 2, type).set_requires_grad(true), sum = at::full({6, 8}, NAN);
    const auto place = GradientPlace::put_on(weight);
    place->open(sum, false);
    linear(LinearInput::plain(at::zeros({2, 0, 8}, type)), weight).sum().backward();
    EXPECT_TRUE(place->close());
    EXPECT_EQ(sum.count_nonzero().item<std::int64_t>(), 0);
  }
}

TEST(GradientPlace, IsOfOneLeafAlone) {
  const at::Tensor leaf = at::ones({2, 3}).set_requires_grad(true), other = at::ones({2, 3}).set_requires_grad(true);
  const auto place = GradientPlace::put_on(leaf);
  EXPECT_EQ(GradientPlace::open_on(leaf), nullptr);
  place->open(at::zeros({2, 3}), true);
  EXPECT_EQ(GradientPlace::open_on(leaf), place.get());
  for (const at::Tensor& without : {other, leaf.detach(), leaf.t(), leaf.view({6}), leaf.variable_data(), leaf.clone()})
    EXPECT_EQ(GradientPlace::open_on(without), nullptr);
}

}  // namespace
}  // namespace zero::test

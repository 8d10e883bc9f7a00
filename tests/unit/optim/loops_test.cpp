// The vectorized passes of Adafactor and Prodigy: compared with the rules composed in fp64, on gradients with zeros and
// in spans that end within rows; and the same bits on every processor and for any number of threads.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "tests/unit/simd_targets.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

using Shape = std::vector<std::int64_t>;

enum class Gradients { usual, some_rows_zero, some_columns_zero, all_zero, tiny };

at::Tensor gradient_of(const Shape& shape, Gradients kind) {
  at::Tensor g = at::randn(shape);
  if (kind == Gradients::all_zero) g.zero_();
  if (kind == Gradients::tiny) g.mul_(1e-25);
  if (shape.size() < 2) return g;
  for (std::int64_t i = 0; i < g.size(-2); i += 3)
    if (kind == Gradients::some_rows_zero) g.select(-2, i).zero_();
  for (std::int64_t i = 0; i < g.size(-1); i += 3)
    if (kind == Gradients::some_columns_zero) g.select(-1, i).zero_();
  return g;
}

/// One tensor that an optimizer trains, in spans of `cut` elements after a first one of 3.
class TrainedBySpans {
 public:
  TrainedBySpans(const std::string& rule, const Shape& shape, at::ScalarType master, std::int64_t cut)
      : cut_(cut),
        optimizer_(optimizer_row(rule).make(
            {{.lr = rule == "prodigy" ? 1.0 : 1e-2, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99}, rule})) {
    at::manual_seed(1);
    master_ = at::randn(shape).flatten().to(master);
    weights_ = at::zeros_like(master_, master == at::kFloat ? at::kBFloat16 : master);
    for (const StateSpec& spec : optimizer_->states(master)) states_.push_back(at::zeros_like(master_, spec.type));
    if (const int like = optimizer_->starts_as_weights(); like >= 0) states_[std::size_t(like)].copy_(master_);
    statistics_.emplace(*optimizer_, std::vector<Shape>{shape}, at::kCPU);
    optimizer_->start(*statistics_);
  }

  void step(const at::Tensor& gradient, int number) {
    const at::Tensor flat = gradient.flatten().to(master_.scalar_type() == at::kFloat ? at::kBFloat16 : at::kDouble);
    UpdateContext context{step_factors(optimizer_->options(), number, optimizer_->options().lr, 1)};
    context.statistics = &*statistics_;
    context.own_lr = optimizer_->options().lr;
    for (context.pass = 0; context.pass < optimizer_->passes(); ++context.pass) {
      statistics_->all_sums().zero_();
      for (std::int64_t begin = 0, n = 3; begin < flat.numel(); begin += n, n = cut_)
        optimizer_->update(span(flat, begin, std::min(n, flat.numel() - begin)), context);
      optimizer_->conclude(context);
    }
  }

  const at::Tensor& master() const { return master_; }
  const at::Tensor& weights() const { return weights_; }

 private:
  UpdateSpan span(const at::Tensor& gradient, std::int64_t begin, std::int64_t n) const {
    UpdateSpan found{master_.narrow(0, begin, n), {}, gradient.narrow(0, begin, n), weights_.narrow(0, begin, n)};
    for (const at::Tensor& state : states_) found.states.push_back(state.narrow(0, begin, n));
    found.begin = begin;
    return found;
  }

  std::int64_t cut_;
  std::unique_ptr<Optimizer> optimizer_;
  at::Tensor master_, weights_;
  std::vector<at::Tensor> states_;
  std::optional<Statistics> statistics_;
};

const Shape shapes[] = {{1}, {50}, {16, 16}, {33, 50}, {1, 70}, {70, 1}, {3, 80, 60}, {200, 100, 3, 3}, {300, 301}};

class Loops : public ::testing::TestWithParam<std::string> {};

TEST_P(Loops, TakeTheStepsOfTheComposedRule) {
  for (const Shape& shape : shapes)
    for (const Gradients kind : {Gradients::usual, Gradients::some_rows_zero, Gradients::some_columns_zero,
                                 Gradients::all_zero, Gradients::tiny})
      for (const std::int64_t cut : {7, 1 << 18}) {
        if (cut == 7 && c10::multiply_integers(shape) > 10000) continue;
        TrainedBySpans loops(GetParam(), shape, at::kFloat, cut), composed(GetParam(), shape, at::kDouble, cut);
        for (int step = 1; step <= 3; ++step) {
          const at::Tensor g = gradient_of(shape, kind).to(at::kBFloat16);
          loops.step(g, step);
          composed.step(g, step);
        }
        EXPECT_TRUE(at::allclose(loops.master().to(at::kDouble), composed.master(), 1e-4, 1e-5))
            << at::IntArrayRef(shape) << ", gradients " << int(kind) << ", cut " << cut;
        EXPECT_TRUE(loops.weights().equal(loops.master().to(at::kBFloat16))) << at::IntArrayRef(shape);
      }
}

TEST_P(Loops, HaveTheSameBitsOnEveryProcessorAndForAnyThreads) {
  const int before = at::get_num_threads();
  for (const Shape& shape : {Shape{300, 301}, {1, 70001}, {90000}, {3, 200, 203}}) {
    at::Tensor expected;
    with_every_simd_target([&](const char* target) {
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        TrainedBySpans loops(GetParam(), shape, at::kFloat, 1 << 18);
        for (int step = 1; step <= 2; ++step) loops.step(gradient_of(shape, Gradients::some_rows_zero), step);
        if (!expected.defined()) expected = loops.master().clone();
        EXPECT_TRUE(loops.master().equal(expected)) << target << ", " << threads << " threads";
      }
    });
  }
  at::set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(Rules, Loops, ::testing::Values("adafactor", "prodigy"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zero

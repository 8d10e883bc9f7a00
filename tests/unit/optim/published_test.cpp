// Every optimizer takes the steps of its publication (tests/data/make_optimizers.py), on tensors of no to four
// dimensions.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "models/formats/safetensors.h"
#include "offload/quantized/block8.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

const std::vector<std::string> small{"A", "B", "C", "scalar", "one", "vector", "matrix", "cube", "kernel"};

/// The settings of a published optimizer (tests/data/optimizers.json) and how far its values may be from ours.
struct Reference {
  std::string name;  // of the values
  OptimizerOptions options;
  double tolerance = 7e-7;  // of the largest entry: 12 roundings to the published fp32
  std::vector<std::string> tensors = small;
  double more_in_fp64 = 1;  // times the tolerance
};

std::vector<Reference> references() {
  return {
      {"adamw", {{.lr = 1e-2, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95}, "adamw"}},
      // A code flips where two are equally near, in fp64 where others are.
      {"adamw8bit", {{.lr = 1e-2, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95}, "adamw8bit"}, 1e-4, {"large"}, 10},
      {"sgd", {{.lr = 1e-2, .weight_decay = 0.01, .momentum = 0.9, .nesterov = true}, "sgd"}},
      {"lion", {{.lr = 1e-3, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99}, "lion"}},
      {"adafactor", {{.lr = 1e-2, .weight_decay = 0.1}, "adafactor"}, 2e-6},
      {"prodigy", {{.lr = 1, .weight_decay = 0.01, .beta1 = 0.9, .beta2 = 0.99}, "prodigy"}, 2e-6},
      {"prodigy_safeguard",
       {{.lr = 1,
         .weight_decay = 0.01,
         .beta1 = 0.9,
         .beta2 = 0.99,
         .use_bias_correction = true,
         .safeguard_warmup = true},
        "prodigy"},
       2e-6},
      // The published one iterates in bf16, whose numbers have 8 bits.
      {"muon",
       {{.lr = 2e-2, .weight_decay = 0.1, .momentum = 0.95, .nesterov = true}, "muon"},
       2e-2,
       {"A", "C", "matrix"}}};
}

/// Types of masters and of gradients.
struct Types {
  const char* name;
  at::ScalarType master, gradient;
};
constexpr Types every_type[] = {{"fp32", at::kFloat, at::kFloat},
                                {"fp32_of_bf16", at::kFloat, at::kBFloat16},
                                {"fp32_of_fp16", at::kFloat, at::kHalf},
                                {"fp64", at::kDouble, at::kDouble}};

/// A tensor, flat, its states and its gradient of a step.
struct Trained {
  std::string name;
  at::Tensor p;
  std::vector<std::int64_t> shape;
  std::vector<at::Tensor> states;
  at::Tensor gradient = {};
};

/// Tensors that are trained by one optimizer, in spans of `cut` elements.
class Training {
 public:
  Training(const Reference& reference, const Types& types, std::int64_t cut)
      : reference_(reference),
        types_(types),
        cut_(cut),
        optimizer_(optimizer_row(reference.options.name).make(reference.options)) {
    for (const std::string& name : reference.tensors) add(name, file_.read("p0." + name));
    // torch.optim.Adafactor takes no tensor without elements; here one changes nothing.
    if (reference.name != "muon" && reference.name != "adamw8bit")
      for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{0}, {0, 3}, {2, 0, 4}})
        add("", at::zeros(shape));
    std::vector<std::vector<std::int64_t>> shapes;
    for (const Trained& t : trained_) shapes.push_back(t.shape);
    statistics_.emplace(*optimizer_, shapes, at::kCPU);
    optimizer_->start(*statistics_);
  }

  void step(int i) {
    constexpr double scale = 1024;
    for (Trained& t : trained_)
      t.gradient = t.name.empty()
                       ? at::zeros({0}, types_.gradient)
                       : file_.read("g" + std::to_string(i) + "." + t.name).to(types_.gradient).mul(scale).flatten();
    UpdateContext context{step_factors(reference_.options, i + 1, reference_.options.lr, 1 / scale)};
    context.statistics = &*statistics_;
    context.own_lr = reference_.options.lr;
    for (context.pass = 0; context.pass < optimizer_->passes(); ++context.pass) {
      statistics_->all_sums().zero_();
      for (int t = 0; t < int(trained_.size()); ++t) update(t, context);
      optimizer_->conclude(context);
      if (context.pass == 0 && optimizer_->transforms_matrices())
        for (const Trained& t : trained_) optimizer_->transform(t.gradient.view(t.shape));
    }
  }

  void expect_published(int step) const {
    EXPECT_TRUE(statistics_->all_kept().isfinite().all().item<bool>());
    for (const Trained& t : trained_) {
      if (t.name.empty()) continue;
      const at::Tensor expected =
          file_.read(reference_.name + "." + std::to_string(step) + "." + t.name).to(types_.master).flatten();
      const double tolerance = reference_.tolerance * (types_.master == at::kDouble ? reference_.more_in_fp64 : 1);
      EXPECT_LT(((t.p - expected).abs().max() / expected.abs().max()).item<double>(), tolerance)
          << t.name << " after step " << step + 1;
    }
  }

 private:
  void add(const std::string& name, const at::Tensor& start) {
    Trained t{name, start.to(types_.master).flatten().clone(), start.sizes().vec(), {}};
    for (const StateSpec& state : optimizer_->states(types_.master))
      t.states.push_back(at::zeros({state.numel(t.p.numel())}, state.type));
    if (const int initial = optimizer_->starts_as_weights(); initial >= 0) t.states[std::size_t(initial)].copy_(t.p);
    trained_.push_back(std::move(t));
  }

  void update(int number, const UpdateContext& context) const {
    const Trained& t = trained_[std::size_t(number)];
    const std::vector<StateSpec> specs = optimizer_->states(types_.master);
    const std::int64_t grain = largest_grain(specs), cut = (cut_ + grain - 1) / grain * grain;  // whole blocks
    for (std::int64_t begin = 0; begin < t.p.numel(); begin += cut) {
      const std::int64_t n = std::min(cut, t.p.numel() - begin);
      UpdateSpan span{t.p.narrow(0, begin, n), {}, t.gradient.narrow(0, begin, n), {}, number, begin};
      for (std::size_t s = 0; s < specs.size(); ++s)
        span.states.push_back(t.states[s].narrow(0, begin / specs[s].grain, specs[s].numel(n)));
      optimizer_->update(span, context);
    }
  }

  Reference reference_;
  Types types_;
  std::int64_t cut_;
  SafetensorsFile file_{ZERO_TEST_DATA "/optimizers.safetensors"};
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Trained> trained_;
  std::optional<Statistics> statistics_;
};

class PublishedOptimizer : public ::testing::TestWithParam<std::tuple<int, int, std::int64_t>> {};

TEST_P(PublishedOptimizer, TakesTheSameTwelveSteps) {
  const auto& [reference, type, cut] = GetParam();
  Training training(references()[std::size_t(reference)], every_type[type], cut);
  for (int i = 0; i < 12; ++i) {
    training.step(i);
    if (i == 0 || i == 4 || i == 11) training.expect_published(i);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedOptimizer,
                         ::testing::Combine(::testing::Range(0, int(references().size())),
                                            ::testing::Range(0, int(std::size(every_type))),
                                            ::testing::Values(std::int64_t{1000}, std::int64_t{40}, std::int64_t{7})),
                         [](const auto& info) {
                           return references()[std::size_t(std::get<0>(info.param))].name + "_" +
                                  every_type[std::get<1>(info.param)].name + "_cut" +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST(PublishedOptimizer, IsThereForEachOfTheTable) {
  for (const OptimizerRow& row : optimizer_table())
    EXPECT_TRUE(std::ranges::any_of(references(), [&](const Reference& r) { return r.options.name == row.name; }))
        << row.name;
}

TEST(Muon, IteratesInBf16WhereAsked) {
  const at::Tensor gradient = at::randn({24, 40});
  const auto direction = [&](at::ScalarType type, bool in_bf16) {
    const OptimizerOptions options{{.ns_bf16 = in_bf16}, "muon"};
    const at::Tensor x = gradient.to(type, /*non_blocking=*/false, /*copy=*/true);
    optimizer_row("muon").make(options)->transform(x);
    return x.to(at::kFloat);
  };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor exact = direction(type, false);
    const double distance = ((direction(type, true) - exact).norm() / exact.norm()).item<double>();
    EXPECT_GT(distance, 1e-4) << type;
    EXPECT_LT(distance, 3e-2) << type;
  }
}

// The momentum of large gradients, next to a small one whose scale makes fp16 hold it.
TEST(Muon, DirectionsThatFp16DoesNotHoldAreThoseOfFp32) {
  const OptimizerOptions options{{.lr = 0.1, .weight_decay = 0, .momentum = 0.95}, "muon"};
  const auto optimizer = optimizer_row("muon").make(options);
  const at::Tensor large = at::tensor({2.0, -1.0, 0.5, 1.0, 3.0, -2.0}, at::kDouble), small = large.flip(0);
  const auto weights_by = [&](at::ScalarType type) {
    const at::Tensor p = at::zeros({6}), momentum = at::zeros({6});
    Statistics statistics(*optimizer, {{2, 3}}, at::kCPU);
    for (int step = 1; step <= 2; ++step) {
      const double scale =
          step == 1 ? 0x1p4 : 0x1p-20;  // what gradients are multiplied by: momentum is 2^24 times them
      const at::Tensor gradient = (step == 1 ? large : small).to(type);
      UpdateContext context{step_factors(options, step, options.lr, scale)};
      context.statistics = &statistics;
      for (context.pass = 0; context.pass < 2; ++context.pass) {
        optimizer->update({p, {momentum}, gradient, {}}, context);
        if (context.pass == 0) optimizer->transform(gradient.view({2, 3}));
      }
    }
    return p;
  };
  const at::Tensor expected = weights_by(at::kFloat);
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16})
    EXPECT_LT((weights_by(type) - expected).abs().max().item<double>(), 0.02 * expected.abs().max().item<double>());
}

}  // namespace
}  // namespace zero

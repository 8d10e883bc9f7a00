#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "zero/optim/optimizer_set.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

/// A published optimizer's values after steps 1, 5 and 12 (tests/data/optimizers.json has its settings), and ours.
struct Reference {
  std::string name;  // of the values
  OptimizerOptions options;
  double tolerance =
      7e-7;  // of the largest entry: 12 roundings of half a unit in the last place, the reference being fp32
};

std::vector<Reference> references() {
  return {{"adamw", {.name = "adamw", .lr = 1e-2, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95}},
          {"sgd", {.name = "sgd", .lr = 1e-2, .weight_decay = 0.01, .momentum = 0.9, .nesterov = true}},
          {"lion", {.name = "lion", .lr = 1e-3, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99}},
          {"adafactor", {.name = "adafactor", .lr = 1e-2, .weight_decay = 0.1}, 2e-6},
          {"prodigy", {.name = "prodigy", .lr = 1, .weight_decay = 0.01, .beta1 = 0.9, .beta2 = 0.99}, 2e-6},
          {"prodigy_safeguard",
           {
               .name = "prodigy",
               .lr = 1,
               .weight_decay = 0.01,
               .beta1 = 0.9,
               .beta2 = 0.99,
               .use_bias_correction = true,
               .safeguard_warmup = true,
           },
           2e-6},
          // The published one iterates in bf16, whose numbers have 8 bits.
          {"muon", {.name = "muon", .lr = 2e-2, .weight_decay = 0.1, .momentum = 0.95, .nesterov = true}, 2e-2}};
}

/// A tensor that is trained in spans of `cut` elements.
struct Trained {
  at::Tensor p;
  std::vector<std::int64_t> shape;
  std::vector<at::Tensor> states;
};

class OptimizerReference : public testing::TestWithParam<std::tuple<int, at::ScalarType, std::int64_t>> {};

TEST_P(OptimizerReference, TwelveStepsAgreeWithThePublishedOne) {
  const auto& [index, type, cut] = GetParam();
  const Reference reference = references()[std::size_t(index)];
  const SafetensorsFile file(ZERO_TEST_DATA "/optimizers.safetensors");
  const auto optimizer = optimizer_row(reference.options.name).make(reference.options);
  std::vector<std::string> names{"A", "B", "C"};
  if (reference.name == "muon") names = {"A", "C"};
  std::vector<Trained> trained;
  std::vector<std::vector<std::int64_t>> shapes;
  for (const std::string& name : names) {
    const at::Tensor p = file.read("p0." + name).to(type);
    Trained t{p.flatten().clone(), p.sizes().vec(), {}};
    for (const StateSpec& state : optimizer->states(type)) t.states.push_back(at::zeros({t.p.numel()}, state.type));
    if (const int initial = optimizer->starts_as_weights(); initial >= 0) t.states[std::size_t(initial)].copy_(t.p);
    shapes.push_back(t.shape);
    trained.push_back(std::move(t));
  }
  Statistics statistics(*optimizer, shapes, at::kCPU);
  optimizer->start(statistics);
  for (int i = 0; i < 12; ++i) {
    UpdateContext context;
    context.factors = step_factors(reference.options, i + 1, reference.options.lr, 0.5);
    context.statistics = &statistics;
    context.run_lr = reference.options.lr;
    std::vector<at::Tensor> gradients;
    for (const std::string& name : names)
      gradients.push_back(file.read("g" + std::to_string(i) + "." + name).to(type).mul(2).flatten());
    for (context.pass = 0; context.pass < optimizer->passes(); ++context.pass) {
      statistics.all_sums().zero_();
      for (int t = 0; t < int(trained.size()); ++t) {
        const Trained& at = trained[std::size_t(t)];
        for (std::int64_t begin = 0; begin < at.p.numel(); begin += cut) {
          const std::int64_t n = std::min(cut, at.p.numel() - begin);
          UpdateSpan span{at.p.narrow(0, begin, n), {}, gradients[std::size_t(t)].narrow(0, begin, n), {}};
          for (const at::Tensor& state : at.states) span.states.push_back(state.narrow(0, begin, n));
          context.part = {t, at.shape, begin};
          optimizer->update(span, context);
        }
      }
      optimizer->conclude(context.pass, context.factors, statistics);
      if (context.pass == 0 && optimizer->transforms_matrices())
        for (std::size_t t = 0; t < trained.size(); ++t) optimizer->transform(gradients[t].view(trained[t].shape));
    }
    if (i != 0 && i != 4 && i != 11) continue;
    for (std::size_t t = 0; t < trained.size(); ++t) {
      const at::Tensor expected =
          file.read(reference.name + "." + std::to_string(i) + "." + names[t]).to(type).flatten();
      EXPECT_LT(((trained[t].p - expected).abs().max() / expected.abs().max()).item<double>(), reference.tolerance)
          << reference.name << " " << names[t] << " step " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerReference,
                         testing::Combine(testing::Range(0, int(references().size())),
                                          testing::Values(at::kFloat, at::kDouble),
                                          testing::Values(std::int64_t{1000}, std::int64_t{16}, std::int64_t{1})),
                         [](const auto& info) {
                           return references()[std::size_t(std::get<0>(info.param))].name + "_" +
                                  (std::get<1>(info.param) == at::kFloat ? "fp32" : "fp64") + "_cut" +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST(Optimizer, DecaysMatricesOnly) {
  EXPECT_TRUE(decays({3, 4}));
  EXPECT_FALSE(decays({3}));
}

TEST(OptimizerSet, TheFirstGroupThatMatchesCounts) {
  OptimizerOptions options{.name = "muon", .lr = 0.02, .weight_decay = 0.1, .lr_adamw = 0.002};
  options.groups = {{{"*.q_proj.weight"}, "lion", 0.001, {}}, {{"*.weight", "nothing"}, {}, {}, 0.0}};
  OptimizerSet set(options);
  const TensorTraits matrix{{8, 8}, true, 0}, head{{8, 8}, false, 0};
  const TensorRule q = set.rule_of("layers.0.q_proj.weight", matrix), k = set.rule_of("layers.0.k_proj.weight", matrix),
                   lm_head = set.rule_of("lm_head.weight", head), bias = set.rule_of("bias", {{8}, true, 0});
  EXPECT_EQ(set[q.optimizer].name(), "lion");
  EXPECT_DOUBLE_EQ(q.lr_scale, 0.05);
  EXPECT_EQ(q.weight_decay, 0.1);
  EXPECT_EQ(set[q.optimizer].options().beta2, 0.99);
  EXPECT_EQ(set[k.optimizer].name(), "muon");
  EXPECT_EQ(k.weight_decay, 0);
  EXPECT_EQ(set[lm_head.optimizer].name(), "adamw");
  EXPECT_DOUBLE_EQ(lm_head.lr_scale, 0.1);
  EXPECT_EQ(bias.weight_decay, 0);
  EXPECT_EQ(set[bias.optimizer].name(), "adamw");
  EXPECT_ANY_THROW(set.check_patterns());
}

}  // namespace
}  // namespace zero

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/formats/safetensors.h"
#include "tests/unit/message_of.h"
#include "zero/optim/optimizer_set.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

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
    context.own_lr = reference.options.lr;
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
  EXPECT_THAT(message_of<InputError>([&] { set.check_groups(); }),
              StartsWith("optimizer settings: group match = \"nothing\": no trained tensor has such a name"));
}

const TensorTraits matrix{{8, 8}, true, 0}, head{{16, 8}, false, 0}, vector{{8}, true, 0};

TEST(OptimizerSet, AnotherOptimizerHasItsOwnRateAndDecay) {
  struct Case {
    std::string run;
    double run_lr;
    std::string group;
    double lr, decay;
  };
  const Case cases[] = {{"prodigy", 1, "adamw", 1e-3, 0.1}, {"adamw", 1e-3, "prodigy", 1, 0.1},
                        {"sgd", 0.1, "lion", 1e-3, 0.1},    {"adamw", 1e-3, "sgd", 1e-3, 0},
                        {"muon", 0.02, "adamw", 1e-3, 0.1}, {"adamw", 5e-4, "adamw", 5e-4, 100}};
  for (const Case& c : cases) {
    OptimizerOptions options = optimizer_row(c.run).defaults;
    options.lr = c.run_lr;
    options.weight_decay = 100;
    options.groups = {{{"a"}, c.group, {}, {}}, {{"b"}, c.group, 0.5, 0.25}};
    OptimizerSet set(options);
    const TensorRule a = set.rule_of("a", matrix), b = set.rule_of("b", vector);
    EXPECT_EQ(set[a.optimizer].name(), c.group);
    EXPECT_DOUBLE_EQ(a.lr_scale * c.run_lr, c.lr) << c.run << " " << c.group;
    EXPECT_EQ(a.weight_decay, c.decay) << c.run << " " << c.group;
    EXPECT_DOUBLE_EQ(b.lr_scale * c.run_lr, 0.5);
    EXPECT_EQ(b.weight_decay, 0.25);
    EXPECT_EQ(set.own_lr_scale(0), 1);
    EXPECT_DOUBLE_EQ(set.own_lr_scale(a.optimizer) * c.run_lr, c.lr) << "that of the first group";
    EXPECT_NO_THROW(set.check_groups());
  }
}

// The rate of matrices is none of what AdamW takes beside them.
TEST(OptimizerSet, AMuonGroupsRateIsOfItsMatrices) {
  for (const bool muon_run : {false, true}) {
    OptimizerOptions options = optimizer_row(muon_run ? "muon" : "adamw").defaults;
    options.lr = 0.01;
    if (muon_run) options.lr_adamw = 5e-4;
    options.groups = {{{"a.*"}, "muon", 0.02, {}}, {{"b.*"}, "muon", 0.02, {}, 0.03}};
    OptimizerSet set(options);
    const double kept = muon_run ? 5e-4 : optimizer_row("muon").defaults.lr_adamw;
    EXPECT_DOUBLE_EQ(set.rule_of("a.matrix", matrix).lr_scale, 2);
    EXPECT_DOUBLE_EQ(set.rule_of("a.vector", vector).lr_scale * 0.01, kept);
    EXPECT_DOUBLE_EQ(set.rule_of("a.head", head).lr_scale * 0.01, kept);
    EXPECT_DOUBLE_EQ(set.rule_of("b.matrix", matrix).lr_scale, 2);
    EXPECT_DOUBLE_EQ(set.rule_of("b.vector", vector).lr_scale, 3);
    EXPECT_NO_THROW(set.check_groups());
  }
}

std::string refusal_of(const std::string& run, std::vector<OptimizerGroup> groups,
                       const std::vector<std::pair<std::string, TensorTraits>>& tensors) {
  OptimizerOptions options = optimizer_row(run).defaults;
  options.groups = std::move(groups);
  OptimizerSet set(options);
  for (const auto& [name, traits] : tensors) set.rule_of(name, traits);
  return message_of<InputError>([&] { set.check_groups(); });
}

TEST(OptimizerSet, RefusesGroupsThatComeToNothing) {
  EXPECT_THAT(refusal_of("adamw", {{{"*norm*"}, "muon", {}, {}}}, {{"norm", vector}}),
              HasSubstr("optimizer = \"muon\": none of the tensors that it matches is a matrix in a block"));
  EXPECT_THAT(refusal_of("muon", {{{"*norm*"}, {}, 0.5, {}}}, {{"norm", vector}}), HasSubstr("give lr_adamw"));
  EXPECT_THAT(refusal_of("muon", {{{"*"}, {}, {}, {}, 0.5}}, {{"up", matrix}}), HasSubstr("give lr"));
  EXPECT_EQ(refusal_of("adamw", {{{"*"}, "lion", {}, {}, {}, "c.toml:3"}, {{"*norm*"}, {}, {}, 0.0, {}, "c.toml:7"}},
                       {{"norm", vector}}),
            "c.toml:7: [[optimizer.group]]: treats no tensor: all that it matches are in groups before it, such as "
            "c.toml:3, group 1 with match *; the first group that matches counts: put this one before");
}

TEST(OptimizerSet, AnUnmatchedPatternIsToldWithANameOfThisRun) {
  const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
  EXPECT_THAT(
      refusal_of("adamw", {{{"*.mlp.*"}, {}, {}, {}, {}, "c.toml:3"}}, {{"modules", head}, {name, matrix}}),
      AllOf(StartsWith("c.toml:3: [[optimizer.group]] match = \"*.mlp.*\": no trained tensor"), HasSubstr(name)));
  EXPECT_THAT(refusal_of("adamw", {{{"lm_head*"}, {}, {}, {}}}, {{"model.embed_tokens.weight", head}}),
              HasSubstr("tied to the embedding, and lm_head.weight is model.embed_tokens.weight"));
}

TEST(OptimizerSet, TellsWhatItTreats) {
  OptimizerOptions options = optimizer_row("muon").defaults;
  options.lr = 0.02;
  options.groups = {{{"norm"}, {}, {}, 0.0}};
  OptimizerSet set(options);
  set.rule_of("up", {{4000, 3000}, true, 0});
  set.rule_of("down", {{4000, 100}, true, 0});
  set.rule_of("head", {{300, 100}, false, 0});
  set.rule_of("norm", vector);
  EXPECT_THAT(set.describe(), ElementsAre("optimizer, group 1: adamw lr 0.0003 on 1 tensor (8), weight decay 0",
                                          "optimizer: muon lr 0.02 on 2 tensors (12.4M), adamw lr 0.0003 on 1 tensor "
                                          "(30.0k), weight decay 0.1"));
}

}  // namespace
}  // namespace zero

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "zero/optim/optimizer_set.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Optimizer, DecaysMatricesOnly) {
  EXPECT_TRUE(decays({3, 4}));
  EXPECT_FALSE(decays({3}));
}

TEST(OptimizerSet, TheFirstGroupThatMatchesCounts) {
  OptimizerOptions options{{.lr = 0.02, .weight_decay = 0.1, .lr_adamw = 0.002}, "muon"};
  options.groups = {{{"*.q_proj.weight"}, "lion", 0.001, {}}, {{"*.weight", "nothing"}, {}, {}, 0.0}};
  OptimizerSet set(options);
  const TensorTraits matrix{{8, 8}, true, 0}, head{{8, 8}, false, 0};
  const TensorRule q = set.rule_of("layers.0.q_proj.weight", matrix), k = set.rule_of("layers.0.k_proj.weight", matrix),
                   lm_head = set.rule_of("lm_head.weight", head), bias = set.rule_of("bias", {{8}, true, 0});
  EXPECT_EQ(set[q.optimizer].name(), "lion");
  EXPECT_EQ(q.own_lr, 0.001);
  EXPECT_EQ(q.weight_decay, 0.1);
  EXPECT_EQ(set[q.optimizer].options().beta2, 0.99);
  EXPECT_EQ(set[k.optimizer].name(), "muon");
  EXPECT_EQ(k.weight_decay, 0);
  EXPECT_EQ(set[lm_head.optimizer].name(), "adamw");
  EXPECT_EQ(k.own_lr, std::nullopt) << "the run's";
  EXPECT_EQ(lm_head.own_lr, 0.002);
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
    EXPECT_EQ(a.lr(c.run_lr, 1), c.lr) << c.run << " " << c.group;
    EXPECT_EQ(a.weight_decay, c.decay) << c.run << " " << c.group;
    EXPECT_EQ(b.lr(c.run_lr, 1), 0.5);
    EXPECT_EQ(b.weight_decay, 0.25);
    EXPECT_EQ(set.own_lr(0, c.run_lr, 1), c.run_lr);
    EXPECT_EQ(set.own_lr(a.optimizer, c.run_lr, 1), c.lr) << "that of the first group";
    EXPECT_NO_THROW(set.check_groups());
  }
}

TEST(OptimizerSet, ARateOfItsOwnFollowsTheScheduleWhateverTheRuns) {
  for (const double run_lr : {0.0, 0.01}) {
    OptimizerOptions options;
    options.lr = run_lr;
    options.groups = {{{"a"}, {}, 0.1, {}}, {{"b"}, {}, {}, 0.5}, {{"c"}, "lion", {}, {}}};
    OptimizerSet set(options);
    const double now = run_lr / 4, schedule = 0.25;
    EXPECT_EQ(set.rule_of("a", matrix).lr(now, schedule), 0.025);
    EXPECT_EQ(set.rule_of("b", matrix).lr(now, schedule), run_lr / 4) << "a group without a rate";
    EXPECT_EQ(set.rule_of("c", matrix).lr(now, schedule), 0.25e-3);
    EXPECT_EQ(set.rule_of("rest", matrix).lr(now, schedule), run_lr / 4);
    TensorRule adapter = set.rule_of("a", matrix);
    adapter.lr_scale = 16;
    EXPECT_EQ(adapter.lr(now, schedule), 0.4);
  }
}

// Prodigy's estimate follows it.
TEST(OptimizerSet, AnOptimizersOwnRateIsTheFirstAboveZero) {
  OptimizerOptions options = optimizer_row("prodigy").defaults;
  options.lr = 0;
  options.groups = {{{"a"}, {}, 0.0, {}}, {{"b"}, {}, 0.5, {}}, {{"c"}, {}, 0.7, {}}};
  OptimizerSet set(options);
  EXPECT_EQ(set.own_lr(0, 0, 0.5), 0.25);
  EXPECT_EQ(set.own_lr(0, 2, 0.5), 2);
}

// The rate of a group's matrices does not apply to the tensors that AdamW takes.
TEST(OptimizerSet, AMuonGroupsRateIsOfItsMatrices) {
  for (const bool muon_run : {false, true}) {
    OptimizerOptions options = optimizer_row(muon_run ? "muon" : "adamw").defaults;
    options.lr = 0.01;
    if (muon_run) options.lr_adamw = 5e-4;
    options.groups = {{{"a.*"}, "muon", 0.02, {}}, {{"b.*"}, "muon", 0.02, {}, 0.03}};
    OptimizerSet set(options);
    const double kept = muon_run ? 5e-4 : optimizer_row("muon").defaults.lr_adamw;
    EXPECT_EQ(set.rule_of("a.matrix", matrix).own_lr, 0.02);
    EXPECT_EQ(set.rule_of("a.vector", vector).own_lr, kept);
    EXPECT_EQ(set.rule_of("a.head", head).own_lr, kept);
    EXPECT_EQ(set.rule_of("b.matrix", matrix).own_lr, 0.02);
    EXPECT_EQ(set.rule_of("b.vector", vector).own_lr, 0.03);
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

TEST(OptimizerSet, AnUnmatchedPatternIsReportedWithANameOfThisRun) {
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
  EXPECT_THAT(set.describe(),
              ElementsAre(AllOf(StartsWith("optimizer, group 1: muon ("),
                                HasSubstr(") takes none of them: adamw lr 0.0003 on 1 tensor (8), weight decay 0")),
                          "optimizer: muon lr 0.02 on 2 tensors (12.4M), adamw lr 0.0003 on 1 tensor "
                          "(30.0k), weight decay 0.1"));
}

}  // namespace
}  // namespace zero

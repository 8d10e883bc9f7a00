// The library's structs of settings against the rows of their rules.
#include "zero/library/optimizer_options_of.h"

#include <gtest/gtest.h>

#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

template <class Options>
void expect_defaults_of(const std::string& name) {
  const OptimizerOptions& row = optimizer_row(name).defaults;
  EXPECT_EQ(lines_of(optimizer_options_of(Options{.lr = row.lr})), lines_of(row)) << name;
}

TEST(OptimizerOptionsOf, DefaultsAreThoseOfTheRules) {
  expect_defaults_of<AdamWOptions>("adamw");
  expect_defaults_of<AdamW8bitOptions>("adamw8bit");
  expect_defaults_of<SgdOptions>("sgd");
  expect_defaults_of<LionOptions>("lion");
  expect_defaults_of<AdafactorOptions>("adafactor");
  expect_defaults_of<ProdigyOptions>("prodigy");
  expect_defaults_of<MuonOptions>("muon");
}

TEST(OptimizerOptionsOf, TakesEveryField) {
  const OptimizerOptions muon = optimizer_options_of(MuonOptions{.lr = 1,
                                                                 .momentum = 0.2,
                                                                 .weight_decay = 3,
                                                                 .nesterov = false,
                                                                 .ns_steps = 4,
                                                                 .ns_bf16 = true,
                                                                 .lr_adamw = 5,
                                                                 .beta1 = 0.6,
                                                                 .beta2 = 0.7,
                                                                 .eps = 8,
                                                                 .groups = {{.match = {"*"}, .lr = 9}}});
  OptimizerOptions expected{{.lr = 1,
                             .weight_decay = 3,
                             .beta1 = 0.6,
                             .beta2 = 0.7,
                             .eps = 8,
                             .momentum = 0.2,
                             .nesterov = false,
                             .ns_steps = 4,
                             .ns_bf16 = true,
                             .lr_adamw = 5},
                            "muon",
                            {{.match = {"*"}, .lr = 9}}};
  EXPECT_EQ(muon, expected);
  const OptimizerOptions prodigy =
      optimizer_options_of(ProdigyOptions{.d0 = 2, .d_coef = 3, .use_bias_correction = true, .safeguard_warmup = true});
  expected = optimizer_row("prodigy").defaults;
  expected.d0 = 2;
  expected.d_coef = 3;
  expected.use_bias_correction = expected.safeguard_warmup = true;
  EXPECT_EQ(prodigy, expected);
}

}  // namespace
}  // namespace zero

#include "zero/optim/optimizer_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace zero {
namespace {

// Ranks that differ in one setting alone are told apart.
TEST(OptimizerOptions, HaveALineForEachSetting) {
  using O = OptimizerOptions;
  const std::vector<std::function<void(O&)>> changes{[](O&) {},
                                                     [](O& o) { o.name = "sgd"; },
                                                     [](O& o) { o.lr += 1e-12; },
                                                     [](O& o) { o.weight_decay = 0; },
                                                     [](O& o) { o.beta1 = 0; },
                                                     [](O& o) { o.beta2 = 0; },
                                                     [](O& o) { o.eps = 1; },
                                                     [](O& o) { o.momentum = 0; },
                                                     [](O& o) { o.nesterov = false; },
                                                     [](O& o) { o.d0 = 1; },
                                                     [](O& o) { o.d_coef = 2; },
                                                     [](O& o) { o.use_bias_correction = true; },
                                                     [](O& o) { o.safeguard_warmup = true; },
                                                     [](O& o) { o.ns_steps = 6; },
                                                     [](O& o) { o.lr_adamw = 0; },
                                                     [](O& o) { o.groups[0].match = {"*"}; },
                                                     [](O& o) { o.groups[0].optimizer = "lion"; },
                                                     [](O& o) { o.groups[0].lr = 1; },
                                                     [](O& o) { o.groups[0].weight_decay = 1; },
                                                     [](O& o) { o.groups[0].lr_adamw = 1; },
                                                     [](O& o) { o.groups.push_back(o.groups[0]); }};
  std::set<std::string> lines;
  for (const auto& change : changes) {
    O options{.groups = {{.match = {"*.bias"}}}};
    change(options);
    lines.insert(lines_of(options));
  }
  EXPECT_EQ(lines.size(), changes.size());
}

}  // namespace
}  // namespace zero

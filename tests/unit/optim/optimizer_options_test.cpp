#include "zero/optim/optimizer_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace zero {
namespace {

// Ranks that differ in one setting alone are told apart.
TEST(OptimizerOptions, HaveALineForEachSetting) {
  using O = OptimizerOptions;
  std::vector<std::function<void(O&)>> changes{[](O&) {},
                                               [](O& o) { o.name = "sgd"; },
                                               [](O& o) { o.lr += 1e-12; },
                                               [](O& o) { o.groups[0].match = {"*"}; },
                                               [](O& o) { o.groups[0].optimizer = "lion"; },
                                               [](O& o) { o.groups[0].lr = 1; },
                                               [](O& o) { o.groups[0].weight_decay = 1; },
                                               [](O& o) { o.groups[0].lr_adamw = 1; },
                                               [](O& o) { o.groups.push_back(o.groups[0]); }};
#define SETTING(type, field, ...) changes.push_back([](O& o) { o.field = o.field ? type(0) : type(1); });
#include "zero/optim/rule_settings.inl"
#undef SETTING
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

// Messages use the words of the user's program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include "base/error.h"
#include "comm/outcome.h"
#include "tests/sim/modules/library_world.h"
#include "tests/sim/modules/two_layers.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace {

using Model = Sharded<TwoLayers>;
at::Tensor input() { return torch::ones({3, 4}); }

std::string mismatch(const std::function<void(const World&)>& body) {
  return message_of<Error>([&] { on_ranks(2, body); });
}

TEST(ModuleMessages, BatchesOfAnotherType) {
  EXPECT_THAT(
      message_of<InputError>([] {
        on_ranks(2, [](const World& world) {
          Model model(TwoLayers(), world, {.precision = bf16});
          model(input());
        });
      }),
      ::testing::AllOf(::testing::HasSubstr("must have the same dtype"),
                       ::testing::HasSubstr("The sharded parameter is of BFloat16 and another argument of Float"),
                       ::testing::HasSubstr("batch.data.to(zero::bf16)")));
}

TEST(ModuleMessages, SavingByLibTorch) {
  on_ranks(2, [](const World& world) {
    Model model(TwoLayers(), world, {.stage = 3});
    model.optimizer(SgdOptions());
    std::ostringstream file;
    const Outcome outcome = outcome_of([&] { torch::save(model.unwrap(), file); });
    EXPECT_EQ(outcome.code, ExitCode::bad_input);
    EXPECT_THAT(outcome.message, ::testing::HasSubstr("model.save()"));
  });
}

TEST(ModuleMessages, CallsThatDifferAreNamedByModules) {
  EXPECT_THAT(mismatch([](const World& world) {
                Model model(TwoLayers(), world);
                model.optimizer(SgdOptions());
                world.is_main() ? (void)model(input()) : world.barrier();
              }),
              ::testing::AllOf(::testing::HasSubstr("(forward of first)"), ::testing::HasSubstr("(world.barrier())")));
  const auto names_of = [](const World& world, bool first) {
    Model one(TwoLayers(), world, {.open_groups = 1}), other(TwoLayers(), world, {.open_groups = 1});
    one(input());
    other(input());
    first ? one(input()) : other(input());
  };
  EXPECT_THAT(mismatch([&](const World& world) { names_of(world, world.is_main()); }),
              ::testing::AllOf(::testing::HasSubstr("(forward of first)"),
                               ::testing::HasSubstr("(forward of first of model 2)")));
}

TEST(ModuleMessages, ASummaryHasUnitsAndBytesByStage) {
  on_ranks(4, [](const World& world) {
    Model model(TwoLayers(), world, {.stage = 2});
    model.optimizer(AdamWOptions());
    const std::string summary = model.summary();
    for (const char* line : {"first +20 +20", "second +10 +10", "all +30 +30", "stage 2 \\(this one\\)"})
      EXPECT_THAT(summary, ::testing::ContainsRegex(line));
    Sharded<torch::nn::Linear> wide(torch::nn::Linear(256, 256), world);
    wide.optimizer(AdamWOptions());
    EXPECT_THAT(wide.summary(), ::testing::AllOf(::testing::HasSubstr("257.0 KiB   257.0 KiB   514.0 KiB"),
                                                 ::testing::HasSubstr("64.2 KiB    64.2 KiB   128.5 KiB")));
  });
}

TEST(ModuleMessages, ASummaryNeedsNoOptimizer) {
  on_ranks(1, [](const World& world) {
    Model model(TwoLayers(), world);
    EXPECT_THAT(model.summary(),
                ::testing::AllOf(::testing::ContainsRegex("all +30 +0\n"), ::testing::HasSubstr("stage 0 (this one)"),
                                 ::testing::Not(::testing::HasSubstr("stage 1"))));
  });
}

}  // namespace
}  // namespace zero::testing

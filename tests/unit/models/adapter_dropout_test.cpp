// The dropout of a model's adapters: each draws its own, the same in backward as in forward, and another one in each
// step.
#include <gtest/gtest.h>

#include <memory>

#include "models/lora/lora.h"
#include "tests/unit/models/drawn_masks.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace {

/// The masks of a pass through a model with adapters on every projection, forward and backward.
struct Pass {
  explicit Pass(std::uint64_t step) {
    LoraOptions options;
    options.target_modules = {"all-linear"};
    options.dropout = 0.5;
    Model model = make_model(small_config());
    add_lora(model, options);
    model = with_random_weights(std::move(model), at::kDouble);
    Batch batch;
    batch.ids = at::arange(20, at::kLong).view({2, 10});
    batch.targets = batch.ids + 1;
    ForwardContext context;
    context.batch = &batch;
    context.training = true;
    context.seed = step;
    DrawnMasks drawn;
    const at::Tensor loss = model.units.back()->forward(run_to_head(model, context), context);
    forward = drawn.take();
    gradients(model, loss);
    backward = drawn.take();
  }
  std::vector<at::Tensor> forward, backward;
};

TEST(AdapterDropout, IsDrawnForEachAdapterAnew) {
  const std::vector<at::Tensor> masks = Pass(1).forward;
  ASSERT_EQ(masks.size(), 2u * 7);
  int pairs = 0;
  for (std::size_t i = 0; i < masks.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (masks[i].sizes() != masks[j].sizes()) continue;
      ++pairs;
      EXPECT_NEAR(agreement(masks[i], masks[j]), 0.5, 0.1) << "draws " << j << " and " << i;  // of 640 numbers or more
    }
  EXPECT_GE(pairs, 40);  // those of a width: q, k, v, gate and up of both blocks, and the two of o and of down
}

TEST(AdapterDropout, IsTheSameInBackwardAndAnotherInTheNextStep) {
  const Pass first(1), second(2);
  ASSERT_EQ(first.backward.size(), first.forward.size());
  for (const at::Tensor& mask : first.forward) {
    int same = 0;
    for (const at::Tensor& other : first.backward) same += agreement(mask, other) == 1;
    EXPECT_EQ(same, 1);
  }
  for (std::size_t i = 0; i < first.forward.size(); ++i)
    EXPECT_NEAR(agreement(first.forward[i], second.forward[i]), 0.5, 0.1) << "draw " << i;
}

}  // namespace
}  // namespace zero::test

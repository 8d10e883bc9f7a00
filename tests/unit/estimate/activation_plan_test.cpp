// The memory of a micro-batch in addition to the states.
#include "zero/estimate/activation_plan.h"
#include "models/families/families.h"

#include <gtest/gtest.h>

#include "zero/estimate/memory_plan.h"

namespace zero {
namespace {

// Memory of attention for documents: none that grows with the square of a row in bf16, one mask in fp32.
TEST(ActivationPlan, CountsWhatPackedRowsTakeOnAGpu) {
  const Model model = make_model(preset_config("llama-110m"));
  const auto planned = [&](at::ScalarType compute, std::int64_t rows, std::int64_t seq_len, bool packed) {
    MemoryWork work;
    work.engine.precision.compute = compute;
    work.on_device = true;
    work.activations.batch = rows;
    work.activations.seq_len = seq_len;
    work.activations.packed = packed;
    return plan_memory(model, work).activations;
  };
  EXPECT_EQ(planned(at::kBFloat16, 1, 4096, true).kept, planned(at::kBFloat16, 8, 512, true).kept);
  EXPECT_EQ(planned(at::kBFloat16, 8, 512, true).kept, planned(at::kBFloat16, 8, 512, false).kept);
  EXPECT_EQ(planned(at::kFloat, 2, 2048, true).kept, planned(at::kFloat, 2, 2048, false).kept + 4 * 2 * 2048 * 2048);
  EXPECT_EQ(planned(at::kFloat, 2, 2048, true).peak(),
            planned(at::kFloat, 2, 2048, false).peak() + 4 * 2 * 2048 * 2048);
}

// Its kernels take both, and hold the same.
TEST(ActivationPlan, CountsTheSameInFp16AsInBf16OnAGpu) {
  const Model model = make_model(preset_config("llama-110m"));
  const auto planned = [&](at::ScalarType compute) {
    MemoryWork work;
    work.engine.precision = {compute, at::kFloat, compute, at::kFloat};
    work.on_device = true;
    work.activations.batch = 4;
    work.activations.seq_len = 512;
    return plan_memory(model, work).activations;
  };
  EXPECT_EQ(planned(at::kHalf).kept, planned(at::kBFloat16).kept);
  EXPECT_EQ(planned(at::kHalf).peak(), planned(at::kBFloat16).peak());
}

// Pieces beyond the second are left out while counting: the last, which may be the smallest, is not.
TEST(ActivationPlan, CountsManyPiecesOfLogitsAsTwo) {
  const Model model = make_model(preset_config("llama-15m"));
  const auto peak = [&](std::int64_t rows) {
    MemoryWork work;
    work.engine.precision = {at::kBFloat16, at::kFloat, at::kBFloat16, at::kFloat};
    work.activations.batch = rows;
    work.activations.seq_len = 256;
    return plan_memory(model, work).activations;
  };
  const auto few = peak(8), many = peak(40);
  EXPECT_EQ(few.logits, many.logits);
  EXPECT_EQ(many.kept - few.kept, 4 * (peak(16).kept - few.kept));
}

}  // namespace
}  // namespace zero

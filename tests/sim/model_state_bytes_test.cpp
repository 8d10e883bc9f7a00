// Bytes at rest equal the formulas of docs/design.md plus padding, on the tracker; the peak of stage 3 stays in its
// bound.
#include <gtest/gtest.h>

#include <array>

#include "models/families/families.h"
#include "offload/memory/cpu_allocator.h"
#include "tests/sim/training_run.h"
#include "zero/core/chain.h"

namespace zero::testing {
namespace {

struct Held {
  std::array<std::int64_t, memory_categories> at_rest{};
  std::int64_t peak = 0;
  std::int64_t peak_activations = 0;
};

std::int64_t bytes(const Held& held, MemoryCategory category) { return held.at_rest[int(category)]; }

// Trains two steps with a tracker per rank; what rank 1 holds between the steps, and its peak.
Held measure(RunOptions options) {
  std::vector<MemoryTracker> trackers(options.ranks);
  Held held;
  options.steps = 2;
  run_training(
      options,
      [&](Engine&, int rank, int step) {
        if (rank == 1 && step == 2) {
          for (int c = 0; c < memory_categories; ++c) held.at_rest[c] = trackers[rank].live(MemoryCategory(c));
          held.peak = trackers[rank].peak();
          held.peak_activations = trackers[rank].peak(MemoryCategory::activations);
        }
      },
      [&](int rank) -> MemoryTracker& { return trackers[rank]; });
  return held;
}

struct Padded {
  std::int64_t all = 0, largest = 0;
  std::int64_t tensors = 0;  // without padding, each group filled up to 64 bytes of fp32
};

Padded padded(const ModelConfig& config, int shards) {
  Model model = make_model(config);
  const Chain chain = chain_of(model);
  Padded sizes;
  for (const GroupSpec& spec : plan_groups(units_of(chain))) {
    const std::int64_t numel = FlatLayout(specs_of(units_of(chain), spec), shards).numel();
    sizes.all += numel;
    std::int64_t tensors = 0;
    for (const auto& parameter : specs_of(units_of(chain), spec))
      for (const TensorSpec& tensor : parameter) tensors += tensor.numel();
    sizes.tensors += (tensors + 15) / 16 * 16;
    sizes.largest = std::max(sizes.largest, numel);
  }
  return sizes;
}

class ModelStateBytes : public ::testing::TestWithParam<std::tuple<int, int, at::ScalarType>> {
 protected:
  static void SetUpTestSuite() {
    allocator_ = std::make_unique<CpuAllocator>();
    allocator_->install();
  }
  static void TearDownTestSuite() { allocator_.reset(); }
  static std::unique_ptr<CpuAllocator> allocator_;
};
std::unique_ptr<CpuAllocator> ModelStateBytes::allocator_;

TEST_P(ModelStateBytes, EqualTheFormulas) {
  const auto [stage, micro_batches, compute] = GetParam();
  RunOptions options;
  options.config = small_config(false);
  options.stage = stage;
  options.ranks = 4;
  options.global_batch = 8;
  options.micro_batches = micro_batches;
  options.compute = compute;
  options.master = at::kFloat;
  const Held held = measure(options);
  const Padded sizes = padded(options.config, 4);

  const std::int64_t n = 4, p = sizes.all, weight = c10::elementSize(compute);
  const std::int64_t gradient = micro_batches > 1 ? 4 : weight;
  const std::int64_t states = compute == at::kFloat ? 8 : 12;  // fp32 weights are their own master
  EXPECT_EQ(bytes(held, MemoryCategory::parameters), p * weight / (stage >= 3 ? n : 1));
  EXPECT_EQ(bytes(held, MemoryCategory::gradients), p * gradient / (stage >= 2 ? n : 1));
  // States are of tensors alone; the first rank's shards have no padding.
  EXPECT_EQ(bytes(held, MemoryCategory::optimizer), stage >= 1 ? p * states / n : sizes.tensors * states);
  EXPECT_EQ(bytes(held, MemoryCategory::activations),
            2 * 64);  // the rotary table: 6 positions x 2 angles, cosines and sines

  // In addition to the states: one full unit, one reduce buffer, one unit's gradient, and activations.
  const std::int64_t shard = bytes(held, MemoryCategory::parameters) + bytes(held, MemoryCategory::gradients) +
                             bytes(held, MemoryCategory::optimizer);
  if (stage == 3) {
    EXPECT_LE(held.peak, shard + 3 * sizes.largest * weight + held.peak_activations + 4096);
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, ModelStateBytes,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Values(1, 2),
                                            ::testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return "stage" + std::to_string(std::get<0>(info.param)) + "_micro" +
                                  std::to_string(std::get<1>(info.param)) + "_" +
                                  c10::toString(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace zero::testing

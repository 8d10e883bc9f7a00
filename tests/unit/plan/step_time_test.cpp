#include "zero/plan/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/plan/commented_config.h"
#include "zero/plan/measured_kernels.h"
#include "zero/plan/sheet_kernels.h"

namespace zero {
namespace {

/// A product of one FLOP takes a nanosecond, and moving a byte takes `byte` seconds. Nothing else takes time.
class CountingKernels final : public Kernels {
 public:
  explicit CountingKernels(double byte) : byte_(byte) {}
  double product(const ProductShape& shape, ProductPass) override { return 1e-9 * shape.flops(); }
  double attention(const AttentionWork&, bool) override { return 0; }
  double rows(RowKernel, std::int64_t, std::int64_t, at::ScalarType) override { return 0; }
  double stream(double bytes) override { return bytes * byte_; }
  std::vector<std::string> sources() const override { return {}; }

 private:
  double byte_;
};

PlanMachine two_ranks(double byte) {
  PlanMachine machine;
  machine.ranks_per_node = 2;
  machine.kernels = std::make_unique<CountingKernels>(byte);
  machine.links.ranks_per_node = 2;
  machine.links.in_node.fill({0, 1e-9});
  machine.disk_read.value = machine.disk_write.value = machine.disk_update.value = machine.host_memory.value =
      machine.host_link.value = 1e9;
  return machine;
}

StepTime step_of(const std::vector<std::string>& settings, double byte = 0) {
  std::vector<std::string> all{"training.global_batch_size=8"};
  all.insert(all.end(), settings.begin(), settings.end());
  const Config config = parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-15m\"\ntie_word_embeddings = false\n[data]\ntrain = [\"a.bin\"]\n"
      "[training]\nsteps = 10\nseq_len = 64\n",
      "run.toml", all);
  PlanMachine machine = two_ranks(byte);
  const BatchArithmetic batch = BatchArithmetic::of(config, machine.ranks());
  const RunModel run = make_run_model(config, model_config_of(config), false, {batch.mesh.tensor, 0});
  const std::vector<UnitWork> units =
      work_of_units(run.own, {config, batch, precision_of(config, batch).compute}, *machine.kernels);
  return simulate_step(run.own, units, config, batch, machine);
}

// llama-15m: matrices of a block and of the head, and elements of all.
constexpr double block = 288 * 288 * 4 + 3 * 288 * 768, head = 32000.0 * 288;
constexpr double matrices = 6 * block + head;
constexpr double elements = matrices + 32000.0 * 288 + 13 * 288;

TEST(StepTime, ProductsAreSixFlopsForEachElementAndToken) {
  const double tokens = 4 * 64;  // of each rank
  EXPECT_NEAR(step_of({"zero.stage=1"}).compute.products, 6e-9 * matrices * tokens, 1e-9);
}

// 9 heads of 3 key-value heads on two context ranks: 5 and 2, and 2 does not divide 5.
TEST(StepTime, HeadsThatRanksShareUnevenlyAreTimed) {
  const std::vector<std::string> heads{"model.num_attention_heads=9", "model.num_key_value_heads=3",
                                       "parallel.context=2"};
  Timings timings("");
  MeasuredKernels kernels({1, 1}, timings);
  const Config config = parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npreset = \"llama-15m\"\nnum_hidden_layers = 1\n[data]\ntrain = [\"a.bin\"]\n"
      "[training]\nsteps = 10\nseq_len = 64\n",
      "run.toml", heads);
  const BatchArithmetic batch = BatchArithmetic::of(config, 2);
  const RunModel run = make_run_model(config, model_config_of(config), false, {1, 0});
  double attention = 0;
  for (const UnitWork& unit : work_of_units(run.own, {config, batch, at::kFloat}, kernels))
    attention += unit.forward.attention;
  EXPECT_GT(attention, 0);
}

TEST(StepTime, RecomputationRunsBlocksAgain) {
  const double plain = step_of({"zero.stage=1"}).compute.products,
               full = step_of({"zero.stage=1", "activation_checkpoint.mode=full"}).compute.products;
  const double again = 2e-9 * 4 * 64 * 6 * (block - 288 * 768);  // all but each block's last product
  EXPECT_NEAR(full - plain, again, 1e-9);
}

// docs/design.md, section 3: 2P; 2P; (A + 1) P; A (3P - h - e), times (N - 1)/N, in elements of two bytes.
TEST(StepTime, BytesFollowTheTableOfStages) {
  const auto one = [](int stage, const char* rows) {
    return step_of({"zero.stage=" + std::to_string(stage), rows, "zero.gradient_dtype=bf16"}).bytes_in_node / 2;
  };
  const char *whole = "training.local_batch_size=4", *quarter = "training.local_batch_size=1";
  EXPECT_NEAR(one(0, whole), elements, 2000);
  EXPECT_NEAR(one(1, whole), elements, 2000);
  EXPECT_NEAR(one(2, quarter), 5 * elements / 2, 2000);
  EXPECT_NEAR(one(3, quarter), 4 * (3 * elements - head - head) / 2, 8000);
}

TEST(StepTime, APipelineWaits) {
  const StepTime one = step_of({"zero.stage=1", "parallel.pipeline=2", "training.local_batch_size=4"}),
                 four = step_of({"zero.stage=1", "parallel.pipeline=2", "training.local_batch_size=1"});
  EXPECT_GT(one.bubble, 1.5 * four.bubble);
  EXPECT_GT(four.bubble, 0);
  EXPECT_LT(four.bytes_in_node, step_of({"zero.stage=1"}).bytes_in_node / 10);
}

TEST(StepTime, GradientsOfMicroBatchesAreCollected) {
  const auto moved = [](const char* stage, const char* rows) { return step_of({stage, rows}, 1).compute.other; };
  // Each micro-batch zeroes the embedding's gradient, in bf16.
  const double embedding = 32000.0 * 288, zeroed = 3 * 2 * embedding;
  const char *one = "training.local_batch_size=4", *four = "training.local_batch_size=1";
  // Products write one micro-batch where it is summed, and the embedding's is copied in bf16. The first of four is
  // copied to fp32, and the others are added.
  EXPECT_NEAR(moved("zero.stage=1", four) - moved("zero.stage=1", one),
              (6 + 3 * 10) * elements - 4 * embedding + zeroed, 1e4);
  // The embedding's is copied in bf16 each time, and half of every gradient is added to the part of this rank.
  EXPECT_NEAR(moved("zero.stage=2", four) - moved("zero.stage=2", one),
              3 * 4 * elements + (4 * 4 - 4) * embedding + zeroed, 1e4);
}

TEST(StepTime, StatesOnDiskAreReadAndWritten) {
  const StepTime time = step_of({"zero.stage=1", "offload.optimizer=nvme", "offload.nvme_dir=nvme"});
  EXPECT_NEAR(time.bytes_disk, 2 * 12 * elements / 2, 2e4);
  EXPECT_EQ(time.bound(), std::string(time.disk > time.compute.products ? "disk" : "products"));
}

TEST(SheetKernels, AreBoundByTheLargerOfArithmeticAndMemory) {
  SheetKernels h100(node_sheet("h100-node"));
  const double large = h100.product({8192, 8192, 8192}, ProductPass::forward);
  EXPECT_NEAR(ProductShape({8192, 8192, 8192}).flops() / large / 989.4e12, 0.72, 0.05);
  const double thin = h100.product({8, 8192, 8192}, ProductPass::forward);
  EXPECT_GT(thin, 2.0 * 8192 * 8192 / 3.35e12);  // reading the weight
}

TEST(LinkRate, TakesBitsAndBytes) {
  EXPECT_DOUBLE_EQ(link_rate("100Gbit", "--link"), 12.5e9);
  EXPECT_DOUBLE_EQ(link_rate("1.5 GB/s", "--link"), 1.5e9);
  for (const char* words : {"100", "Gbit", "-1GB", "1GBx", ""})
    EXPECT_THAT(message_of<InputError>([&] { link_rate(words, "--link"); }), testing::HasSubstr("is no rate")) << words;
}

TEST(CommentedConfig, ReadsBackToTheSameValues) {
  const Config config = parse_config(
      "[job]\noutput_dir = \"out\"\n[model]\npath = \"m\"\n[data]\ntrain = [\"a.jsonl\"]\n[training]\nepochs = 2.0\n"
      "seq_len = 64\nglobal_batch_size = 8\n[optimizer]\nlr = 3e-4\n[zero]\nstage = 2\n[lora]\nr = 4\n",
      "run.toml");
  const std::string file = commented_toml(config, {"zero.stage"}, {"a head"});
  EXPECT_EQ(parse_config(file, "again.toml"), config);
  EXPECT_THAT(file, testing::StartsWith("# a head\n"));
  EXPECT_THAT(file, testing::HasSubstr("# States that are sharded over the ranks."));
  EXPECT_THAT(file, testing::Not(testing::HasSubstr("deadline_seconds")));
}

}  // namespace
}  // namespace zero

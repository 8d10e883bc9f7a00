// Compares the plan of bytes with the ZeRO paper's numbers and with the allocator's.
#include "zero/estimate/memory_plan.h"
#include "models/families/families.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/memory_tracker.h"
#include "comm/collective_memory.h"
#include "comm/fake/fake_communicator.h"
#include "models/initial_weights.h"
#include "models/lora/lora.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/config/config.h"
#include "zero/core/chain.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

ModelConfig paper_model() {
  ModelConfig config;  // 7.5 billion parameters
  config.hidden_size = 4096;
  config.intermediate_size = 10900;
  config.num_hidden_layers = 36;
  config.num_attention_heads = config.num_key_value_heads = 32;
  config.head_dim = 128;
  return config;
}

// Figure 1 of Rajbhandari et al. 2020: 64 ranks, 12 bytes of optimizer state an element, gradients in 16 bits.
TEST(MemoryPlan, GivesThePapersNumbers) {
  const Model model = make_model(paper_model());
  ASSERT_NEAR(double(model.numel()), 7.5e9, 2e6);
  const double gigabytes[] = {120, 31.4, 16.6, 1.9};
  for (int stage = 0; stage <= 3; ++stage) {
    MemoryWork work;
    work.engine.plan = ShardPlan::for_stage(stage);
    work.engine.precision = {at::kHalf, at::kFloat, at::kHalf, at::kFloat};
    work.mesh = {.shard = 64};
    const MemoryPlan plan = plan_memory(model, work);
    EXPECT_NEAR(double(plan.parameters + plan.gradients + plan.optimizer) / 1e9, gigabytes[stage], 0.05)
        << "stage " << stage;
    EXPECT_NEAR(paper_bytes(7.5e9, 0, work.engine, 64).sum() / 1e9, gigabytes[stage], 0.05) << "stage " << stage;
  }
}

// Weight, gradient and what a master has beyond the weight, then two moments: 2 bytes each.
TEST(MemoryPlan, CountsStatesInFewerBytes) {
  const Model model = make_model(preset_config("llama-110m"));
  const auto numel = double(model.numel());
  MemoryWork work;
  work.engine.plan = ShardPlan::for_stage(0);
  work.engine.precision = {at::kBFloat16, at::kFloat, at::kBFloat16, at::kFloat};
  for (const auto& [storage, bytes] : {std::pair(StateStorage{}, 12), std::pair(StateStorage{.bf16_states = true}, 8),
                                       std::pair(StateStorage{.split_master = true}, 10),
                                       std::pair(StateStorage{.bf16_states = true, .split_master = true}, 6)}) {
    work.engine.storage = storage;
    const MemoryPlan plan = plan_memory(model, work);
    EXPECT_NEAR(double(plan.optimizer) / numel, bytes, 0.01);
    EXPECT_NEAR(double(plan.parameters + plan.gradients) / numel, 4, 0.01);
    EXPECT_NEAR(paper_bytes(numel, 0, work.engine, 1).optimizer / numel, bytes, 1e-9);
    // Checkpoints hold whole masters.
    EXPECT_NEAR(double(plan.checkpoint) / numel, storage.bf16_states ? 8 : 12, 0.01);
  }
}

// Adapters have gradients and states, the frozen base has neither.
TEST(MemoryPlan, TheFormulaCountsAdaptersAloneAsTrained) {
  Model model = make_model(preset_config("llama-110m"));
  const double base = double(model.numel());
  add_lora(model, {});
  const double adapters = double(model.trainable_numel());
  MemoryWork work;
  work.engine.plan = ShardPlan::for_stage(0);
  work.engine.precision = {at::kBFloat16, at::kFloat, at::kBFloat16, at::kFloat};
  for (const bool quantize : {false, true}) {
    if (quantize) work.engine.frozen = FrozenFormat::in_nf4(false);
    work.mesh = MeshShape::hybrid(64, 2);
    const double frozen = frozen_bytes(model, work.engine);
    work.mesh = {.shard = 64};
    EXPECT_EQ(frozen, frozen_bytes(model, work.engine)) << "of one whole copy, however many ranks share one";
    const PaperBytes paper = paper_bytes(adapters, frozen_bytes(model, work.engine), work.engine, 1);
    const MemoryPlan plan = plan_memory(model, work);
    EXPECT_NEAR(paper.optimizer, 12 * adapters, 1);
    EXPECT_NEAR(paper.parameters / double(plan.parameters), 1, 0.01);
    EXPECT_NEAR(paper.sum() / double(plan.parameters + plan.gradients + plan.optimizer), 1, 0.01);
    EXPECT_LT(paper.sum(), 2.1 * base + 16 * adapters);
  }
}

// Files are counted without looking at every rank for every part of a checkpoint.
TEST(MemoryPlan, CountsTheFilesThatRanksWrite) {
  ModelConfig config = preset_config("llama-15m");
  for (const bool adapters : {false, true})
    for (const MeshShape& mesh :
         {MeshShape{.replicate = 2, .shard = 5}, MeshShape{.replicate = 3, .shard = 2, .context = 3},
          MeshShape{.pipeline = 2, .replicate = 2, .shard = 3}, MeshShape{.replicate = 2, .shard = 3, .tensor = 2}})
      for (const char* optimizer : {"adamw", "adafactor", "muon"}) {
        SCOPED_TRACE(mesh.describe() + ", " + optimizer + (adapters ? ", adapters" : ""));
        Model model = make_model(config, {mesh.tensor, 0});
        if (adapters) add_lora(model, {});
        EngineOptions options;
        options.plan = ShardPlan::for_stage(2);
        options.optimizer.name = optimizer;
        options.save_frozen = true;
        MetaRank rank(chain_of(model), options, {.mesh = mesh});
        std::vector<std::vector<StateSpec>> states;
        for (const SavedGroup& group : saved_groups(rank.engine())) states.push_back(group.states);
        std::vector<std::int64_t> files;
        for (const auto& sections : sections_of_ranks(rank.engine()))
          files.push_back(ShardFormat(sections, states, ShardFormat::default_chunk_elements).bytes());
        EXPECT_EQ(shard_bytes(rank.engine()), files);
      }
}

TEST(MemoryPlan, LeavesTheSizeOfACheckpointOut) {
  const Model model = make_model(preset_config("llama-15m"));
  MemoryWork work;
  work.engine.plan = ShardPlan::for_stage(1);
  work.mesh = {.shard = 4};
  const MemoryPlan plan = plan_memory(model, work), without = MemoryPlanner(model, false).plan(work);
  EXPECT_GT(plan.checkpoint, 0);
  EXPECT_EQ(without.checkpoint, 0);
  EXPECT_EQ(without.peak(), plan.peak());
  work.copies_checkpoints = true;
  EXPECT_EQ(MemoryPlanner(model, false).plan(work).copy, plan_memory(model, work).copy);
}

TEST(MemoryPlan, CountsWhatLiesOnDisk) {
  const Model model = make_model(preset_config("llama-110m"));
  MemoryWork work;
  work.engine.plan = ShardPlan::for_stage(3);
  work.mesh = {.shard = 2};
  const MemoryPlan resident = plan_memory(model, work);
  work.optimizer_on_disk = work.parameters_on_disk = work.parameters_in_store = true;
  const MemoryPlan plan = plan_memory(model, work);
  EXPECT_EQ(plan.optimizer, 4 * (16 << 20));  // the tier's buffers, whatever the model
  EXPECT_LT(plan.parameters, resident.parameters);
  EXPECT_GE(plan.disk, resident.parameters + resident.optimizer);
  EXPECT_LT(plan.disk, resident.parameters + resident.optimizer + std::int64_t(model.units.size()) * 16 * 4096);
}

// A model keeps tables from pass to pass; a plan leaves none to the next.
TEST(MemoryPlan, IsTheSameForAModelThatWasPlannedBefore) {
  const Model model = make_model(preset_config("llama-15m"));
  MemoryWork work;
  work.activations.seq_len = 256;
  const MemoryPlan first = plan_memory(model, work), second = plan_memory(model, work);
  EXPECT_GT(first.activations.at_rest, 0);
  EXPECT_EQ(first.activations.at_rest, second.activations.at_rest);
  EXPECT_EQ(first.peak(), second.peak());
}

TEST(MemoryPlan, CountsThePartsOfSumsOnAGpu) {
  const Model model = make_model(paper_model());
  MemoryWork work;
  work.mesh = {.shard = 8};
  EXPECT_EQ(plan_memory(model, work).sums, 0) << "ranks of the CPU read each other's memory";
  EXPECT_EQ(plan_memory(model, work).workspace, 0);
  work.on_device = true;
  for (int stage = 0; stage <= 3; ++stage) {
    work.engine.plan = ShardPlan::for_stage(stage);
    const MemoryPlan plan = plan_memory(model, work);
    EXPECT_EQ(plan.sums, sum_chunk_bytes) << "stage " << stage;
    EXPECT_EQ(plan.at_rest(), plan.parameters + plan.gradients + plan.optimizer + plan.gather_buffers +
                                  plan.reduce_buffers + plan.activations.at_rest + plan.sums + plan.workspace);
    EXPECT_EQ(plan.workspace, 32 << 20);
  }
  work.mesh = {.shard = 1};
  EXPECT_EQ(plan_memory(model, work).sums, 0);
}

// Ranks that share one copy sum first, those that hold the same shard then; each communicator has parts of its own.
TEST(MemoryPlan, CountsThePartsOfBothSumsOfHybridSharding) {
  const Model model = make_model(paper_model());
  MemoryWork work;
  work.mesh = {.shard = 8};
  work.on_device = true;
  const auto sums = [&](int stage, int degree) {
    work.engine.plan = ShardPlan::for_stage(stage);
    work.mesh = MeshShape::hybrid(8, degree);
    return plan_memory(model, work).sums;
  };
  for (int stage = 1; stage <= 3; ++stage) {
    EXPECT_EQ(sums(stage, 4), 2 * sum_chunk_bytes) << "stage " << stage;
    EXPECT_EQ(sums(stage, 8), sum_chunk_bytes) << "stage " << stage;
    EXPECT_EQ(sums(stage, 1), sum_chunk_bytes) << "one rank holds everything: all ranks sum at once";
  }
  EXPECT_EQ(sums(0, 4), sum_chunk_bytes) << "nothing is sharded";
  work.parameters_in_store = true;
  EXPECT_EQ(sums(3, 1), sum_chunk_bytes) << "replicas alone";
}

struct Case {
  std::string name;
  int stage = 0;
  at::ScalarType compute = at::kBFloat16;
  int recompute_every = 0;
  std::int64_t micro_batches = 1;
  bool tied = false, masked = false;
  std::int64_t vocabulary = 3000, seq_len = 128;
  bool recompute_attention = false;
  bool packed = false;  // two documents a row
  std::optional<LoraOptions> lora = {};
  bool fuse_accumulation = false;
  std::int64_t mlp_tokens = 0;
  DropoutShares dropout = {};
};

LoraOptions adapters(std::vector<std::string> targets, double dropout, bool dora = false,
                     std::vector<std::string> saved = {}) {
  LoraOptions options;
  options.r = 16;
  options.dropout = dropout;
  options.target_modules = std::move(targets);
  options.modules_to_save = std::move(saved);
  options.use_dora = dora;
  return options;
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MeasuredPeak : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    allocator_ = std::make_unique<CpuAllocator>();
    allocator_->install();
  }
  static void TearDownTestSuite() { allocator_.reset(); }
  static std::unique_ptr<CpuAllocator> allocator_;
};
std::unique_ptr<CpuAllocator> MeasuredPeak::allocator_;

ModelConfig model_of(const Case& c) {
  ModelConfig config;
  config.vocab_size = c.vocabulary;
  config.hidden_size = 192;
  config.intermediate_size = 512;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 6;
  config.num_key_value_heads = 2;
  config.head_dim = 32;
  config.tie_word_embeddings = c.tied;
  config.dropout = c.dropout;
  return config;
}

/// Two training steps on one of `ranks` pretended ranks.
void train(Model& model, const Case& c, const EngineOptions& options, int ranks, MemoryTracker& tracker) {
  Chain chain;
  for (auto& unit : model.units) chain.push_back(unit.get());
  FakeCommunicator communicator(0, ranks);
  Mesh mesh(communicator);
  Engine engine(chain, mesh, options);
  RandomWeights weights(model, 0);
  engine.load(weights);
  tracker.reset_peak();
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t a = 0; a < c.micro_batches; ++a) {
      Batch batch;
      batch.ids = at::arange(2 * c.seq_len, at::kLong).remainder(c.vocabulary).view({2, c.seq_len});
      batch.targets = batch.ids.clone();
      if (c.masked) batch.targets.select(1, 0).fill_(ignored_target);
      if (c.packed) {
        const at::Tensor places = at::arange(c.seq_len, at::kLong).expand({2, c.seq_len});
        batch.positions = places.remainder(c.seq_len / 2);
        batch.documents = (places >= c.seq_len / 2).to(at::kInt);
      }
      ForwardContext context;
      context.batch = &batch;
      context.training = true;
      context.gradient_scale = 1.0 / double(2 * c.seq_len);
      ChainPass(engine.chain_run(), context, {a == 0, a + 1 == c.micro_batches}).backward(context.gradient_scale);
    }
    engine.update({1e-3, 1.0, 1.0}, at::zeros({}, at::kDouble));
  }
}

TEST_P(MeasuredPeak, IsTheOneThatWasPlanned) {
  const Case& c = GetParam();
  Model model = make_model(model_of(c));
  if (c.lora) add_lora(model, *c.lora);
  MemoryWork work;
  work.engine.plan = ShardPlan::for_stage(c.stage);
  work.engine.precision = {c.compute, at::kFloat, c.micro_batches > 1 ? at::kFloat : c.compute, at::kFloat};
  work.engine.recompute_every = c.recompute_every;
  work.engine.recompute_attention = c.recompute_attention;
  work.engine.fuse_accumulation = c.fuse_accumulation;
  work.engine.micro_batches = c.micro_batches;
  work.engine.mlp_tokens = c.mlp_tokens;
  work.mesh = {.shard = 4};
  work.activations.batch = 2;
  work.activations.seq_len = c.seq_len;
  work.activations.masked_targets = c.masked;
  work.activations.packed = c.packed;
  const MemoryPlan plan = plan_memory(model, work);

  MemoryTracker tracker;
  {
    TrackerScope scope(tracker);
    train(model, c, work.engine, work.mesh.ranks(), tracker);
  }
  EXPECT_EQ(tracker.peak(MemoryCategory::parameters), plan.parameters);
  EXPECT_EQ(tracker.peak(MemoryCategory::gradients), plan.gradients);
  EXPECT_EQ(tracker.peak(MemoryCategory::optimizer), plan.optimizer);
  EXPECT_EQ(tracker.peak(MemoryCategory::buffers), plan.gather_buffers + plan.reduce_buffers);
  EXPECT_NEAR(double(plan.activations.peak()) / double(tracker.peak(MemoryCategory::activations)), 1, 0.02);
  EXPECT_NEAR(double(plan.training_peak()) / double(tracker.peak()), 1, 0.02);
}

class WholeMatrices : public MeasuredPeak {};

// Muon's scratch is the peak where matrices are wide and rows few.
TEST_P(WholeMatrices, TakeWhatWasPlanned) {
  const Case& c = GetParam();
  ModelConfig config = model_of(c);
  config.num_hidden_layers = 2;
  config.hidden_size = 256;
  config.intermediate_size = 8192;
  Model model = make_model(config);
  MemoryWork work;
  work.engine.plan = ShardPlan::for_stage(c.stage);
  work.engine.precision = {c.compute, at::kFloat, c.compute, at::kFloat};
  work.engine.optimizer = optimizer_row("muon").defaults;
  work.mesh = {.shard = 4};
  work.activations.batch = 2;
  work.activations.seq_len = c.seq_len;
  const MemoryPlan plan = plan_memory(model, work);
  EXPECT_GT(plan.training_peak(), plan.micro_batch_peak());

  MemoryTracker tracker;
  {
    TrackerScope scope(tracker);
    train(model, c, work.engine, work.mesh.ranks(), tracker);
  }
  EXPECT_NEAR(double(plan.training_peak()) / double(tracker.peak()), 1, 0.02);
}

INSTANTIATE_TEST_SUITE_P(
    Stages, WholeMatrices,
    ::testing::Values(Case{.name = "stage0", .seq_len = 8}, Case{.name = "stage1", .stage = 1, .seq_len = 8},
                      Case{.name = "stage3", .stage = 3, .seq_len = 8},
                      Case{.name = "stage3_fp32", .stage = 3, .compute = at::kFloat, .seq_len = 8}),
    [](const auto& info) { return info.param.name; });

class QuantizedBase : public MeasuredPeak {};

// Shards and gathered bytes of a quantized base, to the byte, and what loading adds.
TEST_P(QuantizedBase, TakesWhatWasPlanned) {
  const FrozenFormat formats[] = {FrozenFormat::in_nf4(false), FrozenFormat::in_nf4(true), FrozenFormat::in_8_bits()};
  for (int f = 0; f < 3; ++f) {
    Model model = make_model(model_of(GetParam()));
    add_lora(model, {});
    MemoryWork work;
    work.engine.plan = ShardPlan::for_stage(GetParam().stage);
    work.engine.precision = {at::kBFloat16, at::kFloat, at::kBFloat16, at::kFloat};
    work.engine.frozen = formats[f];
    work.mesh = {.shard = 4};
    const MemoryPlan plan = plan_memory(model, work);

    MemoryTracker tracker;
    TrackerScope scope(tracker);
    Chain chain;
    for (auto& unit : model.units) chain.push_back(unit.get());
    FakeCommunicator communicator(0, work.mesh.ranks());
    Mesh mesh(communicator);
    Engine engine(chain, mesh, work.engine);
    RandomWeights weights(model, 0);
    EXPECT_EQ(tracker.live(MemoryCategory::parameters), plan.parameters) << f;
    EXPECT_EQ(tracker.live(MemoryCategory::buffers), plan.gather_buffers + plan.reduce_buffers) << f;
    const std::int64_t before = tracker.live();
    engine.load(weights);
    EXPECT_LE(tracker.peak() - before, plan.load) << f;
    EXPECT_EQ(tracker.live(), before);
    tracker.reset_peak();
    engine.export_weights([](const TensorSpec&, const at::Tensor&) {}, /*trainable_only=*/true);
    EXPECT_LE(tracker.peak() - before, plan.save) << f;
    EXPECT_GT(tracker.peak() - before, 0.9 * double(plan.save)) << "an adapter: nothing of the frozen base is joined";
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, QuantizedBase,
                         ::testing::Values(Case{.name = "stage0"}, Case{.name = "stage2", .stage = 2},
                                           Case{.name = "stage3", .stage = 3}),
                         [](const auto& info) { return info.param.name; });

// fp32 but for the largest: oneDNN takes scratch for products of bf16 from the same allocator, which only counts where
// all is small.
constexpr at::ScalarType fp32 = at::kFloat;
INSTANTIATE_TEST_SUITE_P(
    Runs, MeasuredPeak,
    ::testing::Values(
        Case{.name = "stage0", .compute = fp32},
        Case{.name = "stage1_masked", .stage = 1, .compute = fp32, .masked = true},
        Case{.name = "stage2_accumulating", .stage = 2, .compute = fp32, .micro_batches = 2},
        Case{.name = "stage0_fused", .compute = fp32, .seq_len = 16, .fuse_accumulation = true},
        Case{.name = "stage1_fused_accumulating",
             .stage = 1,
             .compute = fp32,
             .recompute_every = 1,
             .micro_batches = 2,
             .fuse_accumulation = true},
        Case{.name = "stage2_fused", .stage = 2, .compute = fp32, .seq_len = 16, .fuse_accumulation = true},
        Case{.name = "stage3", .stage = 3, .compute = fp32},
        Case{.name = "stage3_recomputing", .stage = 3, .compute = fp32, .recompute_every = 1},
        Case{.name = "selective", .compute = fp32, .recompute_every = 2, .seq_len = 512},
        Case{.name = "attention_again", .stage = 3, .compute = fp32, .seq_len = 512, .recompute_attention = true},
        Case{.name = "mlp_by_tiles", .stage = 3, .compute = fp32, .seq_len = 512, .mlp_tokens = 100},
        Case{.name = "lora_bf16_recomputing",
             .stage = 3,
             .recompute_every = 1,
             .seq_len = 512,
             .lora = adapters({"all-linear"}, 0.1)},
        Case{.name = "mlp_by_tiles_recomputing",
             .stage = 3,
             .compute = fp32,
             .recompute_every = 1,
             .seq_len = 512,
             .lora = adapters({"all-linear"}, 0.1),
             .mlp_tokens = 128},
        Case{.name = "packed", .compute = fp32, .packed = true},
        Case{.name = "packed_recomputing", .stage = 3, .compute = fp32, .recompute_every = 1, .packed = true},
        Case{.name = "lora", .compute = fp32, .lora = LoraOptions{}},
        Case{.name = "lora_everywhere", .stage = 3, .compute = fp32, .lora = adapters({"all-linear"}, 0.1)},
        Case{.name = "dora_recomputing",
             .stage = 2,
             .compute = fp32,
             .recompute_every = 1,
             .lora = adapters({"all-linear"}, 0, true)},
        Case{.name = "lora_attention_again",
             .compute = fp32,
             .seq_len = 512,
             .recompute_attention = true,
             .lora = adapters({"o_proj"}, 0, false, {"embed_tokens", "norm"})},
        Case{.name = "fp16", .stage = 3, .compute = at::kHalf, .seq_len = 64},
        Case{.name = "fp16_packed",
             .stage = 1,
             .compute = at::kHalf,
             .recompute_every = 1,
             .seq_len = 64,
             .packed = true},
        Case{.name = "dropout", .compute = fp32, .dropout = {0.1, 0.1, 0.1}},
        Case{.name = "dropout_recomputing",
             .stage = 3,
             .recompute_every = 1,
             .seq_len = 512,
             .dropout = {0.1, 0.1, 0.1}},
        Case{.name = "dropout_fp16", .compute = at::kHalf, .seq_len = 64, .dropout = {0.1, 0.1, 0.1}},
        Case{.name = "tied", .stage = 3, .compute = fp32, .tied = true},
        Case{.name = "few_tokens", .stage = 3, .compute = fp32, .seq_len = 8},
        Case{.name = "chunks_masked", .stage = 2, .compute = fp32, .masked = true, .vocabulary = 32000, .seq_len = 256},
        Case{.name = "chunks_bf16", .stage = 3, .vocabulary = 32000, .seq_len = 300},
        Case{.name = "chunks_bf16_tied", .stage = 1, .tied = true, .vocabulary = 32000, .seq_len = 300}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zero

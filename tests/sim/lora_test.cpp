// LoRA through the engine: the golden case of PEFT, agreement of stages, ranks and batches, dropout, learning rates of
// its own.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <set>

#include "models/decoder/decoder.h"
#include "models/families/families.h"
#include "models/formats/hf_directory.h"
#include "models/formats/hf_weights.h"
#include "models/lora/adapted_weights.h"
#include "models/lora/adapter_writer.h"
#include "offload/memory/cpu_allocator.h"
#include "offload/memory/host_shard_store.h"
#include "offload/shard_store.h"
#include "tests/sim/golden_case.h"
#include "tests/sim/matrix.h"
#include "tests/sim/training_run.h"
#include "zero/core/chain.h"

namespace zero::testing {
namespace {

/// Saves like zero_train.
void save(Engine& engine, int rank, const std::string& folder, const Model& model, const LoraOptions& options) {
  std::vector<TensorSpec> specs;
  std::vector<at::Tensor> values;
  engine.export_weights(
      [&](const TensorSpec& spec, const at::Tensor& value) {
        specs.push_back(spec);
        values.push_back(value.clone());
      },
      /*trainable_only=*/true);
  if (rank != 0) return;
  AdapterWriter writer(folder, specs, family_of(model.config.model_type), options, nullptr, nullptr);
  for (std::size_t i = 0; i < specs.size(); ++i) writer.append(specs[i], values[i]);
  writer.finish("model", {});
}

std::set<std::string> names_of(const PeftDirectory& adapter) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : adapter.weights().tensors()) names.insert(tensor.name);
  return names;
}

void expect_merged_logits(const GoldenCase& golden, const std::string& adapter) {
  const auto directory = std::make_shared<HfDirectory>(golden.folder + "/model");
  Model model = make_model(directory->config());
  MergedWeights merged(std::make_shared<HfWeights>(directory), open_adapter(adapter, model));
  hold_parameters(model, at::kFloat);
  load_parameters(model, merged);
  const at::NoGradGuard no_grad;
  const Batch batch = golden.batch(0, golden.settings["batch"]);
  ForwardContext context;
  context.batch = &batch;
  at::Tensor x;
  for (std::size_t u = 0; u + 1 < model.units.size(); ++u) x = model.units[u]->forward(x, context);
  const at::Tensor want = golden.expected.read("merged.logits");
  EXPECT_LT((logits_of(*model.units.back(), x, context) - want).abs().max().item<double>(), 1e-4);
}

class GoldenLora : public ::testing::TestWithParam<std::tuple<const char*, int, int>> {};

TEST_P(GoldenLora, TrainsAsPeftDoes) {
  const auto [name, stage, ranks] = GetParam();
  const GoldenCase golden(name);
  const int micro_batches = ranks == 4 ? 3 : (stage + ranks) % 2 ? 2 : 1;
  const auto scratch = std::filesystem::temp_directory_path() / ("zero-lora-" + std::to_string(::getpid()));
  const auto adapter = std::make_shared<PeftDirectory>(golden.folder + "/adapter");
  SimWorld({.ranks = ranks}).run([&, stage = stage](Communicator& communicator, int rank) {
    const auto directory = std::make_shared<HfDirectory>(golden.folder + "/model");
    Model model = make_model(directory->config());
    const LoraOptions options =
        add_lora(model, stored_options(adapter->options(), directory->config(), adapter->folder()));
    Mesh mesh(communicator);
    Engine engine(chain_of(model), mesh, golden.engine_options(stage));
    AdaptedWeights weights(std::make_shared<HfWeights>(directory), open_adapter(adapter->folder(), model));
    weights.check(tensors_of(model));
    engine.load(weights);
    train_and_compare(golden, engine, rank, micro_batches);
    save(engine, rank, scratch, model, options);
  });
  expect_merged_logits(golden, scratch);
  EXPECT_EQ(names_of(PeftDirectory(scratch)), names_of(*adapter)) << "what PEFT asks for is there";
  EXPECT_EQ(PeftDirectory(scratch).options().ensure_weight_tying, adapter->options().ensure_weight_tying);
  std::filesystem::remove_all(scratch);
}

/// The last two train norms and an embedding whole that is the head as well.
INSTANTIATE_TEST_SUITE_P(Cases, GoldenLora,
                         ::testing::Combine(::testing::Values("tiny-lora", "families/gemma3-lora",
                                                              "families/gpt2-lora"),
                                            ::testing::Range(0, 4), ::testing::Range(1, 5)));

RunOptions lora_run() {
  RunOptions run;
  run.config = small_config(false);
  run.lora.emplace();
  run.lora->r = 3;
  run.lora->alpha = 6;
  run.lora->target_modules = {"all-linear"};
  run.ragged = true;
  return run;
}

class LoraParity : public ::testing::TestWithParam<std::tuple<int, int>> {};

// Against one rank that sees the whole batch at once, in fp64, although samples differ in length.
TEST_P(LoraParity, EqualsOneRankWithTheWholeBatch) {
  const auto [stage, ranks] = GetParam();
  Share share(3, stage + ranks);
  for (const bool dora : {false, true}) {
    RunOptions reference = lora_run();
    reference.steps = 4;
    reference.lora->use_dora = dora;
    reference.lora->dropout = dora ? 0 : 0.3;
    static std::map<bool, RunResult> references;  // of LoRA and of DoRA
    if (!references.contains(dora)) references[dora] = run_training(reference);
    const RunResult& expected = references[dora];
    ASSERT_LT(expected.losses.back(), expected.losses.front());
    for (const int micro_batches : {1, 2, 3})
      for (const int every : {0, 1})
        for (const bool keep : {false, true}) {
          if (24 % (ranks * micro_batches) || (keep && (stage != 3 || every)) || !share.takes()) continue;
          RunOptions run = reference;
          run.stage = stage;
          run.ranks = ranks;
          run.micro_batches = micro_batches;
          run.recompute_every = every;
          run.recompute_attention = every == 0 && micro_batches == 2;
          run.keep_frozen = keep;
          EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12)
              << micro_batches << " micro-batches, recompute " << every << ", dora " << dora << ", keep " << keep;
        }
  }
}

TEST_P(LoraParity, GivesEqualLossCurvesInFp32) {
  const auto [stage, ranks] = GetParam();
  RunOptions reference = lora_run();
  reference.compute = reference.master = at::kFloat;
  reference.global_batch = 144;  // divides by all
  reference.steps = 4;
  static const RunResult expected = run_training(reference);
  Share share(3, stage + ranks);
  for (int micro_batches = 1; micro_batches <= 4; ++micro_batches) {
    if (!share.takes()) continue;
    RunOptions run = reference;
    run.stage = stage;
    run.ranks = ranks;
    run.micro_batches = micro_batches;
    const RunResult got = run_training(run);
    for (std::size_t step = 0; step < got.losses.size(); ++step)
      EXPECT_LT(std::abs(got.losses[step] / expected.losses[step] - 1), 1e-5)
          << micro_batches << " micro-batches, step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, LoraParity, ::testing::Combine(::testing::Range(0, 4), ::testing::Range(1, 5)));

TEST(Lora, TrainsModulesThatAreSavedWhole) {
  for (const bool tied : {false, true}) {
    RunOptions reference = lora_run();
    reference.config = small_config(tied);
    reference.lora->modules_to_save = {"embed_tokens", "norm"};  // those of the blocks too, as in PEFT
    if (!tied) reference.lora->modules_to_save.push_back("lm_head");
    const RunResult expected = run_training(reference);
    for (const int stage : {1, 2, 3}) {
      RunOptions run = reference;
      run.stage = stage;
      run.ranks = 3;
      EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << "stage " << stage << ", tied " << tied;
    }
  }
}

TEST(Lora, LeavesTheBaseAlone) {
  RunOptions run = lora_run();
  run.stage = 3;
  run.ranks = 2;
  run.steps = 0;
  const RunResult before = run_training(run);
  run.steps = 3;
  const RunResult after = run_training(run);
  int changed = 0;
  for (const auto& [name, weight] : before.weights) {
    const bool adapter = name.find("lora_") != std::string::npos;
    EXPECT_EQ(at::equal(weight, after.weights.at(name)), !adapter) << name;
    changed += adapter;
  }
  EXPECT_EQ(changed, 2 * 7 * 2);
}

// The first AdamW step moves every element by its learning rate (but for eps and decay).
TEST(Lora, MovesBByItsOwnLearningRate) {
  RunOptions run = lora_run();
  run.lora->loraplus_lr_ratio = 16;
  for (const auto& [stage, ranks] : {std::pair{0, 1}, {2, 3}, {3, 4}}) {
    run.stage = stage;
    run.ranks = ranks;
    run.steps = 0;
    const RunResult before = run_training(run);
    run.steps = 1;
    const RunResult after = run_training(run);
    for (const auto& [name, weight] : before.weights) {
      if (name.find("lora_") == std::string::npos) continue;
      const double rate = 0.01 * (name.ends_with("lora_B.weight") ? 16 : 1);
      const at::Tensor moved = (after.weights.at(name) - weight * (1 - rate * OptimizerOptions().weight_decay)).abs();
      EXPECT_NEAR(moved.median().item<double>(), rate, 1e-3 * rate) << name;
    }
  }
}

// A step's dropout is the same for any ranks and batches (above), but another in the next step, and absent outside
// training.
TEST(Lora, DrawsNewDropoutEachStep) {
  RunOptions run = lora_run();
  run.steps = 2;
  const RunResult without = run_training(run);
  run.lora->dropout = 0.5;
  const RunResult with = run_training(run);
  EXPECT_GT(std::abs(with.losses[0] - without.losses[0]), 1e-6);
  run.lora->seed = 1;
  EXPECT_NE(run_training(run).losses[0], with.losses[0]);
}

// Blocks are cut at the same places for any number of ranks, so the quantized base is the same.
struct BaseCase {
  const char* name;
  FrozenFormat format;
  double most;  // that it may move the first loss
};
std::ostream& operator<<(std::ostream& out, const BaseCase& base) { return out << base.name; }

class QuantizedBaseParity : public ::testing::TestWithParam<BaseCase> {};

TEST_P(QuantizedBaseParity, GivesTheSameAtAnyStageAndRanks) {
  RunOptions reference = lora_run();
  reference.steps = 4;
  reference.config.hidden_size = 32;  // rows of whole blocks, but for o's
  reference.config.intermediate_size = 64;
  reference.frozen = GetParam().format;
  const RunResult expected = run_training(reference);
  RunOptions plain = reference;
  plain.frozen = {};
  const double difference = std::abs(run_training(plain).losses[0] - expected.losses[0]);
  EXPECT_GT(difference, 1e-6);
  EXPECT_LT(difference, GetParam().most);
  for (const auto& [stage, ranks] : {std::pair{0, 2}, {1, 3}, {2, 2}, {3, 1}, {3, 2}, {3, 3}, {3, 4}})
    for (const bool keep : {false, true})
      for (const bool overlap : {false, true}) {
        RunOptions run = reference;
        run.stage = stage;
        run.ranks = ranks;
        run.keep_frozen = keep;
        run.overlap = overlap;
        run.recompute_every = ranks == 3;
        EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12)
            << "stage " << stage << ", " << ranks << " ranks, keep " << keep;
      }
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantizedBaseParity,
                         ::testing::Values(BaseCase{"nf4", FrozenFormat::in_nf4(false), 0.2},
                                           BaseCase{"nf4_with_quantized_scales", FrozenFormat::in_nf4(true), 0.2},
                                           BaseCase{"int8", FrozenFormat::in_8_bits(), 0.01}),
                         [](const auto& info) { return info.param.name; });

TEST(QuantizedBase, GivesTheSameInShardGroupsAndStores) {
  for (const FrozenFormat& format : {FrozenFormat::in_nf4(true), FrozenFormat::in_8_bits()}) {
    RunOptions reference = lora_run();
    reference.config.hidden_size = 32;
    reference.config.intermediate_size = 64;
    reference.frozen = format;
    reference.steps = 3;
    const RunResult expected = run_training(reference);
    RunOptions run = reference;
    run.stage = 3;
    run.ranks = 4;
    run.shard_degree = 2;
    EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << "shard groups";
    run.shard_degree = 0;
    run.policy_of = [](int) {
      OffloadPolicy policy;
      policy.weights = [](const std::vector<std::int64_t>& bytes) { return make_host_shard_store(bytes); };
      return policy;
    };
    EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << "shards in a store";
  }
}

std::int64_t parameter_bytes(RunOptions run) {
  CpuAllocator allocator;
  allocator.install();
  std::vector<MemoryTracker> trackers(run.ranks);
  std::int64_t bytes = 0;
  run.steps = 1;
  run_training(
      run,
      [&](Engine&, int rank, int step) {
        if (rank == 0 && step == 1) bytes = trackers[rank].live(MemoryCategory::parameters);
      },
      [&](int rank) -> MemoryTracker& { return trackers[rank]; });
  return bytes;
}

TEST(QuantizedBase, TakesAQuarterOfTheBlocks) {
  RunOptions run = lora_run();
  run.config.hidden_size = 96;
  run.config.intermediate_size = 256;
  run.config.vocab_size = 8;
  run.config.head_dim = 16;
  run.compute = at::kBFloat16;
  run.master = at::kFloat;
  for (const auto& [stage, ranks] : {std::pair{0, 1}, {3, 2}}) {
    run.stage = stage;
    run.ranks = ranks;
    run.frozen = {};
    const double whole = double(parameter_bytes(run));
    run.frozen = FrozenFormat::in_nf4(false);
    const std::int64_t once = parameter_bytes(run);
    EXPECT_LT(double(once), 0.4 * whole) << "stage " << stage;
    run.frozen = FrozenFormat::in_nf4(true);
    const std::int64_t blocks =
        (96 * (96 + 2 * 2 * 16 + 96) + 3 * 96 * 256) / 64 * 2 / ranks;  // of both layers, of a rank
    const std::int64_t saved = once - parameter_bytes(run);
    EXPECT_LE(saved, 3 * blocks) << "stage " << stage;
    EXPECT_GE(saved, 3 * blocks - 2 * (8 * 8 + 3 * 64))
        << "stage " << stage;  // of a layer: headers of 8 groups at most, 3 runs rounded up
  }
}

}  // namespace
}  // namespace zero::testing

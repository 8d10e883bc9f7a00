// The tensor and the context axis, and both: every family trains as one rank does, in fp64, at every stage, in full and
// with adapters, over padded rows. Losses, norms, all gradients and weights are compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/decoder/decoder.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "models/model.h"
#include "offload/memory/cpu_allocator.h"
#include "tests/sim/checkpoint_bench.h"
#include "tests/sim/decoder_parts.h"
#include "tests/sim/every_optimizer.h"
#include "tests/sim/matrix.h"
#include "tests/sim/training_run.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace parallel_axes_test {

/// Ranks, those of the two axes, and those of a sharding group.
struct Layout {
  int ranks, tensor = 1, context = 1, shard_degree = 0;
};
std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  out << "np" << layout.ranks << "_tensor" << layout.tensor << "_context" << layout.context;
  return layout.shard_degree ? out << "_degree" << layout.shard_degree : out;
}

RunOptions with_layout(RunOptions run, const Layout& layout) {
  run.ranks = layout.ranks;
  run.tensor = layout.tensor;
  run.context = layout.context;
  run.shard_degree = layout.shard_degree;
  return run;
}

Parts llama_like() { return {"llama_like", small_config(false)}; }

RunOptions reference_of(const Parts& parts) { return ragged_run(parts, 12); }

void add_adapters(RunOptions& run, bool dora) {
  run.lora.emplace();
  run.lora->r = 3;
  run.lora->alpha = 6;
  run.lora->dropout = 0.3;
  run.lora->use_dora = dora;
  run.lora->use_rslora = !dora;
  run.lora->target_modules = {"all-linear"};
}

enum class Kind : std::uint8_t { full, adapters, dora };
const std::vector<Kind> kinds = {Kind::full, Kind::adapters, Kind::dora};

using Case = std::tuple<Parts, Kind, int, Layout>;

class ParallelAxes : public ::testing::TestWithParam<Case> {};

TEST_P(ParallelAxes, TrainsAsOneRankDoes) {
  const auto& [parts, kind, stage, layout] = GetParam();
  RunOptions reference = reference_of(parts);
  if (kind == Kind::dora && reference.config.model_type == "gpt2")
    GTEST_SKIP() << "DoRA is not done for weights stored [in, out]";
  if (kind != Kind::full) add_adapters(reference, kind == Kind::dora);
  static std::map<std::pair<std::string, Kind>, RunResult> references;  // those of one rank
  if (!references.contains({parts.name, kind})) references[{parts.name, kind}] = run_training(reference);
  const RunResult& expected = references[{parts.name, kind}];
  ASSERT_GT(expected.norms.back(), 0);
  for (const int micro_batches : {1, 3}) {
    RunOptions run = with_layout(reference, layout);
    run.stage = stage;
    run.micro_batches = micro_batches;
    if (run.global_batch % (run.ranks / (run.tensor * run.context) * micro_batches)) continue;
    run.recompute_every = micro_batches == 3;
    run.keep_inputs = micro_batches == 1;
    run.fuse_accumulation = micro_batches == 3;
    EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << micro_batches << " micro-batches";
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& [parts, kind, stage, layout] = info.param;
  std::ostringstream name;
  name << parts.name
       << (kind == Kind::full   ? ""
           : kind == Kind::dora ? "_dora"
                                : "_adapters")
       << "_stage" << stage << "_" << layout;
  return name.str();
}

const std::vector<int> stages = {0, 1, 2, 3};
const std::vector<Parts> families = {llama_like(), gemma_like(), olmo_like(), gpt2_like(), phi3_like()};

INSTANTIATE_TEST_SUITE_P(TwoSlices, ParallelAxes,
                         ::testing::ValuesIn(pairs_of(families, kinds, stages,
                                                      std::vector{Layout{2, 2}, Layout{4, 2}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(FourSlices, ParallelAxes,
                         ::testing::ValuesIn(pairs_of(std::vector{four_heads()}, kinds, std::vector{0, 1, 3},
                                                      std::vector{Layout{4, 4}, Layout{8, 4}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Hybrid, ParallelAxes,
                         ::testing::ValuesIn(pairs_of(std::vector{llama_like()}, kinds, std::vector{1, 3},
                                                      std::vector{Layout{4, 2, 1, 1}, Layout{8, 2, 1, 2},
                                                                  Layout{8, 1, 2, 2}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(TwoParts, ParallelAxes,
                         ::testing::ValuesIn(pairs_of(families, kinds, stages,
                                                      std::vector{Layout{2, 1, 2}, Layout{4, 1, 2}})),
                         name_of);
// Six queries with two keys: six ranks share the keys, three have two queries each, four and five have one or two.
INSTANTIATE_TEST_SUITE_P(SharedHeads, ParallelAxes,
                         ::testing::ValuesIn(pairs_of(std::vector{llama_like(), phi3_like()}, kinds, std::vector{0, 3},
                                                      std::vector{Layout{6, 1, 6}, Layout{3, 1, 3}, Layout{4, 1, 4},
                                                                  Layout{5, 1, 5}, Layout{6, 2, 3}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(BothAxes, ParallelAxes,
                         ::testing::ValuesIn(pairs_of(std::vector{four_heads(), gpt2_of_four()}, kinds, stages,
                                                      std::vector{Layout{4, 2, 2}, Layout{8, 2, 2}})),
                         name_of);

// The whole batch trains one token, the last one of the last row.
TEST(ParallelTokens, OneTrainedTokenIsEnough) {
  RunOptions run = reference_of(four_heads());
  run.global_batch = 1;
  run.seq_len = 7;
  run.ragged = false;
  run.steps = 2;
  run.only_last_token = true;
  const RunResult expected = run_training(run);
  for (const int stage : {0, 3}) {
    run.stage = stage;
    for (const Layout& layout : {Layout{2, 2}, Layout{2, 1, 2}, Layout{4, 2, 2}})
      EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 1e-12) << stage << " " << layout;
  }
}

TEST(ParallelTokens, MayBeOfPackedDocuments) {
  Share share(3, 0);  // 8 layouts: each family begins at another one
  for (const Parts& parts : {four_heads(), gemma_like(), olmo_like(), gpt2_like(), phi3_like()}) {
    RunOptions run = reference_of(parts);
    run.ragged = false;
    run.packed = true;
    const RunResult expected = run_training(run);
    for (const int stage : {0, 3})
      for (const Layout& layout : {Layout{2, 2}, Layout{4, 2}, Layout{2, 1, 2}, Layout{4, 1, 2}}) {
        if (!share.takes()) continue;
        run.stage = stage;
        EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 1e-12) << parts << layout;
      }
  }
}

/// Logits of two documents of a row, [T, vocabulary], from rank 0 of the layout.
at::Tensor logits_of_documents(const Layout& layout, std::int64_t first_token) {
  const Parts parts = four_heads();
  at::Tensor found;
  SimWorld(layout.ranks).run([&](Communicator& communicator, int rank) {
    Mesh mesh(communicator, {.context = layout.context, .tensor = layout.tensor});
    Model model = make_model(parts.config, {layout.tensor, mesh.index(MeshAxis::tensor)});
    EngineOptions options;
    options.precision = {at::kDouble, at::kDouble, at::kDouble, at::kDouble};
    Engine engine(chain_of(model), mesh, options);
    const Model whole = make_model(parts.config);
    RandomWeights weights(whole, 3);
    engine.load(weights);
    Batch batch;
    batch.ids = at::arange(7, at::kLong).view({1, 7}).clone();
    batch.ids[0][1] = first_token;
    batch.targets = at::full({1, 7}, 1, at::kLong);
    batch.documents = at::tensor({0, 0, 0, 1, 1, 1, 1}, at::kInt).view({1, 7});
    batch.positions = at::tensor({0, 1, 2, 0, 1, 2, 3}, at::kLong).view({1, 7});
    ForwardContext context;
    context.batch = &batch;
    const at::Tensor logits = engine.evaluate(context, logits_of);
    if (rank == 0) found = logits.view({7, -1}).clone();
  });
  return found;
}

// Another token in the first document changes its logits, and not a bit of the second one's.
TEST(ParallelTokens, SeeTheirOwnDocumentAlone) {
  for (const Layout& layout : {Layout{1}, Layout{2, 1, 2}, Layout{4, 1, 4}, Layout{4, 2, 2}}) {
    SCOPED_TRACE(::testing::Message() << layout);
    const at::Tensor one = logits_of_documents(layout, 1), other = logits_of_documents(layout, 20);
    EXPECT_FALSE(at::equal(one.narrow(0, 1, 2), other.narrow(0, 1, 2)));
    EXPECT_TRUE(at::equal(one.narrow(0, 3, 4), other.narrow(0, 3, 4)));
  }
}

TEST(ParallelTokens, ChunksOfLogitsChangeNothing) {
  RunOptions run = reference_of(four_heads());
  const RunResult expected = run_training(run);
  run.logits_bytes = 1;
  for (const Layout& layout : {Layout{4, 4}, Layout{4, 1, 4}, Layout{4, 2, 2}})
    EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 1e-12) << layout;
}

// Copies of a whole parameter on ranks of the tensor axis could drift apart in bf16 and fp32 as well.
TEST(ParallelTypes, TrainsInBf16AndFp32) {
  RunOptions run = reference_of(llama_like());
  run.compute = run.master = at::kFloat;
  const RunResult expected = run_training(run);
  for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    run.compute = compute;
    run.stage = 3;
    for (const Layout& layout : {Layout{4, 2}, Layout{4, 1, 2}})
      EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))),
                compute == at::kFloat ? 2e-4 : 0.2)
          << layout;
  }
}

// Adapters of every layer learn, and the same on all ranks.
TEST(ParallelAdapters, StayEqualOverTwentySteps) {
  RunOptions run = reference_of(phi3_like());
  run.steps = 20;
  run.keep_gradients = false;
  add_adapters(run, false);
  const RunResult expected = run_training(run);
  run.stage = 2;
  const RunResult cut = run_training(with_layout(run, {4, 2}));
  EXPECT_LT(largest_difference(expected, run_training(with_layout(run, {4, 1, 2}))), 1e-9);
  EXPECT_LT(largest_difference(expected, cut), 1e-9);  // rounding grows from step to step
  int trained = 0;
  for (const auto& [name, weight] : cut.weights)
    if (name.ends_with("lora_B.weight")) {
      EXPECT_GT(weight.abs().max().item<double>(), 0) << name;
      ++trained;
    }
  EXPECT_EQ(trained, 8);  // four matrices in each of two blocks
}

/// Weights that are their own index in the full tensor, so that an element out of its place shows as a number.
class Indices final : public WeightSource {
 public:
  void check(const std::vector<TensorSpec>&) override {}
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override {
    EXPECT_FALSE(tensor.cut) << tensor.name;
    out.copy_(at::arange(begin, begin + count, at::kDouble));
  }
};

TEST(ParallelElements, ComeAndGoInTheirPlaces) {
  for (const Parts& parts : {llama_like(), gemma_like(), olmo_like(), gpt2_like(), phi3_like(), four_heads()})
    for (const int stage : {0, 1, 3}) {
      const int tensor = parts.config.num_key_value_heads % 4 == 0 ? 4 : 2, ranks = 2 * tensor;
      SCOPED_TRACE(parts.name);
      const Model full = make_model(parts.config);
      SimWorld(ranks).run([&](Communicator& communicator, int rank) {
        Mesh mesh(communicator, {.shard = 2, .tensor = tensor});
        Model model = make_model(parts.config, {tensor, mesh.index(MeshAxis::tensor)});
        EngineOptions options;
        options.plan = ShardPlan::for_stage(stage);
        options.precision = {at::kDouble, at::kDouble, at::kDouble, at::kDouble};
        Engine engine(chain_of(model), mesh, options);
        Indices indices;
        engine.load(indices);
        std::vector<TensorSpec> seen;
        engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) {
          seen.push_back(spec);
          EXPECT_EQ(value.sizes().vec(), spec.shape) << spec.name;
          EXPECT_TRUE(at::equal(value.reshape({-1}), at::arange(value.numel(), at::kDouble))) << spec.name;
        });
        const std::vector<TensorSpec> expected = tensors_of(full), told = engine.exported_tensors(false);
        ASSERT_EQ(seen.size(), expected.size());
        ASSERT_EQ(told.size(), expected.size());
        for (std::size_t t = 0; t < seen.size(); ++t) {
          EXPECT_EQ(seen[t].name, expected[t].name);
          EXPECT_EQ(seen[t].shape, expected[t].shape);
          EXPECT_EQ(told[t].name, expected[t].name);
        }
      });
    }
}

// Checkpoints of any layout go on in any other.
TEST(ParallelCheckpoints, GoOnInAnyLayout) {
  const Layout layouts[] = {{1}, {3}, {2, 2}, {4, 4}, {4, 2}, {4, 2, 2}, {2, 1, 2}};
  RunOptions base = reference_of(four_heads());
  base.steps = 4;
  base.keep_gradients = false;
  const RunResult expected = run_training(base);
  int stage = -1;
  Share share(3, 0);
  for (const Layout& from : layouts)
    for (const Layout& to : layouts) {
      ++stage;
      if (!share.takes()) continue;
      SCOPED_TRACE(::testing::Message() << from << " to " << to);
      MemoryDisk disk("/disk");
      RunOptions run = with_layout(base, from);
      run.stage = stage % 4;
      run.steps = 2;
      run_training(run, [&](Engine& engine, int, int step) {
        if (step == 2) save_at(engine, step, *disk.calls());
      });
      run = with_layout(base, to);
      run.stage = (stage + 1) % 4;
      run.first_step = 2;
      RunResult resumed = run_training(run, [&](Engine& engine, int, int step) {
        if (step == 2) restore_from(engine, step, *disk.calls());
      });
      RunResult whole = expected;
      for (RunResult* result : {&whole, &resumed}) {
        result->losses.erase(result->losses.begin(), result->losses.begin() + 2);
        result->norms.erase(result->norms.begin(), result->norms.begin() + 2);
      }
      EXPECT_LT(largest_difference(whole, resumed), 1e-12);
    }
}

/// Elements of all calls between the ranks of the axes in one step, by kind.
std::map<CollectiveKind, std::int64_t> elements_of_a_step(const RunOptions& run) {
  std::map<CollectiveKind, std::int64_t> elements;
  const RunResult result = run_training(run);
  for (const SimCall& call : result.calls.front())
    if (call.call.tag.phase == Phase::activations) elements[call.call.kind] += call.call.numel;
  return elements;
}

// The formulas of docs/parallel.md, in elements of full vectors.
TEST(ParallelTraffic, FollowsTheFormulas) {
  RunOptions run = reference_of(llama_like());
  run.ragged = false;
  run.keep_gradients = false;
  run.steps = 1;
  const std::int64_t tokens = std::int64_t(run.global_batch) * run.seq_len, width = run.config.hidden_size,
                     layers = run.config.num_hidden_layers, loss = 2 * 2 * tokens;
  const std::int64_t q = run.config.num_attention_heads * run.config.head_dim,
                     kv = run.config.num_key_value_heads * run.config.head_dim;
  const std::int64_t swap = layers * tokens / 2 * (2 * q + 2 * kv);  // a rank's part, one way
  auto found = elements_of_a_step(with_layout(run, {2, 2}));
  // forward: two a block and the head's; backward: four a block, the head's and the embedding's
  EXPECT_EQ(found[CollectiveKind::all_gather], (6 * layers + 3) * tokens * width + loss);
  EXPECT_EQ(found[CollectiveKind::reduce_scatter], (4 * layers + 2) * tokens * width);
  EXPECT_EQ(found[CollectiveKind::all_to_all], 0);
  run.keep_inputs = true;
  found = elements_of_a_step(with_layout(run, {2, 2}));
  EXPECT_EQ(found[CollectiveKind::all_gather], (4 * layers + 3) * tokens * width + loss);
  run.keep_inputs = false;
  // Recomputation repeats forward's calls, but for the sum behind the last product.
  run.recompute_every = 1;
  found = elements_of_a_step(with_layout(run, {2, 2}));
  EXPECT_EQ(found[CollectiveKind::all_gather], (8 * layers + 3) * tokens * width + loss);
  EXPECT_EQ(found[CollectiveKind::reduce_scatter], (5 * layers + 2) * tokens * width);
  EXPECT_EQ(elements_of_a_step(with_layout(run, {2, 1, 2}))[CollectiveKind::all_to_all], 3 * swap);
  run.recompute_every = 0;
  run.recompute_attention = true;
  found = elements_of_a_step(with_layout(run, {2, 2}));
  EXPECT_EQ(found[CollectiveKind::all_gather], (7 * layers + 3) * tokens * width + loss);
  EXPECT_EQ(found[CollectiveKind::reduce_scatter], (4 * layers + 2) * tokens * width);
  EXPECT_EQ(elements_of_a_step(with_layout(run, {2, 1, 2}))[CollectiveKind::all_to_all], 3 * swap);
  run.recompute_attention = false;
  found = elements_of_a_step(with_layout(run, {2, 1, 2}));
  EXPECT_EQ(found[CollectiveKind::all_to_all], 2 * swap);
  EXPECT_EQ(found[CollectiveKind::all_gather] + found[CollectiveKind::reduce_scatter], 0);
}

// The engine tells the memory that an export takes.
TEST(ParallelExport, TakesNoMoreMemoryThanItSays) {
  CpuAllocator allocator;
  allocator.install();
  for (const Layout& layout : {Layout{1, 1}, Layout{2, 2}, Layout{4, 2}})
    for (const int stage : {0, 1, 3}) {
      RunOptions run = with_layout(reference_of(llama_like()), layout);
      run.stage = stage;
      run.steps = 1;
      run.keep_gradients = false;
      run.config.vocab_size = 4096;
      std::vector<MemoryTracker> trackers(std::size_t(run.ranks));
      const auto after_step = [&](Engine& engine, int rank, int step) {
        if (step != 1) return;
        MemoryTracker& tracker = trackers[std::size_t(rank)];
        tracker.reset_peak();
        const std::int64_t before = tracker.live();
        engine.export_weights([](const TensorSpec&, const at::Tensor&) {});
        const std::int64_t taken = tracker.peak() - before, said = engine.export_bytes(false);
        EXPECT_LE(taken, said + said / 50 + 4096) << layout << " stage " << stage << " rank " << rank;
        EXPECT_GE(3 * taken, said) << layout << " stage " << stage << " rank " << rank;
      };
      run_training(run, after_step, [&](int rank) -> MemoryTracker& { return trackers[std::size_t(rank)]; });
    }
}

// Sums, statistics and matrices of an optimizer are those of whole tensors.
TEST(ParallelOptimizers, SeeWholeTensors) {
  Share share(3, 0);  // 11 layouts: each optimizer begins at another one
  for (const OptimizerOptions& optimizer : every_optimizer()) {
    if (optimizer.name == "adamw8bit") continue;
    const std::string name = testing::name_of(optimizer);
    RunOptions run = reference_of(four_heads());
    run.keep_gradients = false;
    run.optimizer = optimizer;
    run.lr = optimizer.lr;
    run.steps = 4;
    run.optimizer.eps = std::max(run.optimizer.eps, 1e-5);
    const RunResult expected = run_training(run);
    for (const int stage : {0, 1, 3})
      for (const Layout& layout : {Layout{2, 2}, Layout{4, 2}, Layout{4, 2, 2}, Layout{4, 2, 1, 1}}) {
        if ((stage == 0 && layout.shard_degree > 0) || !share.takes()) continue;
        run.stage = stage;
        EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 1e-10)
            << name << " stage " << stage << " " << layout;
      }
  }
}

// Blocks of 8-bit states may not be cut. With the second width each slice of two ranks is whole blocks.
TEST(ParallelOptimizers, KeepWholeBlocks) {
  RunOptions run = reference_of(llama_like());
  run.optimizer = optimizer_row("adamw8bit").defaults;
  run.optimizer.eps = 1e-5;
  run.config = config_for(run.optimizer, true);
  run.keep_gradients = false;
  const auto cut = [&] { return run_training(with_layout(run, {2, 2})); };
  EXPECT_THAT(message_of<InputError>(cut), ::testing::HasSubstr("inside one"));
  run.config.num_attention_heads = run.config.num_key_value_heads = 8;
  run.config.head_dim = 64;
  run.config.hidden_size = run.config.intermediate_size = 512;
  run.config.vocab_size = 64;
  run.global_batch = 4;
  EXPECT_LT(largest_difference(run_training(run), cut()), 1e-6);
}

}  // namespace parallel_axes_test
}  // namespace zero::testing

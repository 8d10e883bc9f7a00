#include "tests/sim/training_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/random.h"
#include "models/families/families.h"
#include "models/formats/base_model.h"
#include "models/initial_weights.h"
#include "models/lora/adapted_weights.h"
#include "zero/core/chain.h"
#include "zero/core/gradient_accumulation.h"

namespace zero::testing {

ModelConfig small_config(bool tied) {
  ModelConfig config;
  config.vocab_size = 37;
  config.hidden_size = 24;
  config.intermediate_size = 44;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 6;
  config.num_key_value_heads = 2;
  config.head_dim = 4;
  config.max_position_embeddings = 64;
  config.tie_word_embeddings = tied;
  config.initializer_range = 0.2;
  return config;
}

std::vector<std::int64_t> sample_tokens(std::int64_t sample, int seq_len, std::int64_t vocab) {
  std::vector<std::int64_t> tokens(seq_len + 1);
  std::uint64_t state = std::uint64_t(sample) * golden_gamma + 1;
  std::int64_t token = sample % vocab;
  for (auto& t : tokens) {
    t = token;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    token = (token + 1 + std::int64_t(state >> 62)) % vocab;
  }
  return tokens;
}

namespace {

/// Tokens of a sample that are trained; the rest of its row is padding.
int length_of(std::int64_t sample, const RunOptions& run) {
  return run.ragged ? 1 + int(sample * 7 % run.seq_len) : run.seq_len;
}

double trained_tokens(std::int64_t first, const RunOptions& run) {
  if (run.only_last_token) return run.global_batch;
  double tokens = 0;
  for (int i = 0; i < run.global_batch; ++i) tokens += length_of(first + i, run);
  return tokens;
}

void pad(Batch& batch, std::int64_t first, const RunOptions& run) {
  batch.documents = at::zeros(batch.ids.sizes(), at::kInt);
  for (int b = 0; b < batch.ids.size(0); ++b) {
    const int length = length_of(first + b, run), rest = run.seq_len - length;
    batch.targets[b].narrow(0, length, rest).fill_(ignored_target);
    batch.documents[b].narrow(0, length, rest).fill_(-1);
  }
}

void pack(Batch& batch, std::int64_t first, const RunOptions& run) {
  batch.documents = at::zeros(batch.ids.sizes(), at::kInt);
  batch.positions = at::arange(run.seq_len, at::kLong).repeat({batch.ids.size(0), 1});
  for (int b = 0; b < batch.ids.size(0); ++b) {
    const int length = 1 + int((first + b) * 7 % run.seq_len), rest = run.seq_len - length;
    batch.documents[b].narrow(0, length, rest).fill_(1);
    batch.positions[b].narrow(0, length, rest).sub_(length);
  }
}

Batch batch_of(std::int64_t first, int rows, const RunOptions& run) {
  const int seq_len = run.seq_len;
  const std::int64_t vocab = run.config.vocab_size;
  Batch batch;
  batch.ids = at::empty({rows, seq_len}, at::kLong);
  batch.targets = at::empty({rows, seq_len}, at::kLong);
  for (int b = 0; b < rows; ++b) {
    const auto tokens = sample_tokens(first + b, seq_len, vocab);
    std::copy(tokens.begin(), tokens.end() - 1, batch.ids.data_ptr<std::int64_t>() + b * seq_len);
    std::copy(tokens.begin() + 1, tokens.end(), batch.targets.data_ptr<std::int64_t>() + b * seq_len);
  }
  if (run.ragged) pad(batch, first, run);
  if (run.packed) pack(batch, first, run);
  if (run.only_last_token) batch.targets.narrow(1, 0, seq_len - 1).fill_(ignored_target);
  return batch;
}

EngineOptions engine_options(const RunOptions& run) {
  EngineOptions options;
  options.plan = ShardPlan::for_stage(run.stage);
  options.sums_in_order = run.rows_in_order > 0;
  options.micro_batches = run.micro_batches;
  options.precision = {run.compute, run.master,
                       run.micro_batches > 1 || options.sums_in_order ? run.master : run.compute,
                       run.master == at::kDouble ? at::kDouble : at::kFloat};
  if (run.gradient) options.precision.gradient = *run.gradient;
  options.optimizer = run.optimizer;
  options.storage = run.storage;
  options.recompute_every = run.recompute_every;
  options.recompute_attention = run.recompute_attention;
  options.keep_inputs = run.keep_inputs;
  options.mlp_tokens = run.mlp_tokens;
  options.inputs_on_host = run.inputs_on_host;
  options.write_gradients = run.write_gradients;
  options.fuse_accumulation = run.fuse_accumulation;
  options.overlap = run.overlap;
  options.keep_frozen = run.keep_frozen;
  options.frozen = run.frozen;
  options.pipeline = {run.schedule, run.chunks};
  return options;
}

/// Like accumulate_gradients(), but forwards run ahead, in the order of a pipeline's stage.
at::Tensor pipelined_gradients(Engine& engine, const RunOptions& run, double scale, const ContextOf& context_of) {
  std::deque<std::unique_ptr<ChainPass>> passes;
  std::vector<Batch> batches(std::size_t(run.micro_batches));
  at::Tensor loss_sum = at::zeros({1}, at::kDouble);
  const auto finish = [&] {
    passes.front()->backward(scale);
    loss_sum.add_(passes.front()->result().detach());
    passes.pop_front();
  };
  for (int a = 0; a < run.micro_batches; ++a) {
    ForwardContext context = context_of(a, batches[std::size_t(a)]);
    context.gradient_scale = scale;
    const MicroBatch micro{a == 0, a + 1 == run.micro_batches};
    passes.push_back(std::make_unique<ChainPass>(engine.chain_run(), context, micro));
    if (int(passes.size()) == run.under_way) finish();
  }
  while (!passes.empty()) finish();
  return loss_sum;
}

double sum_over_ranks(Communicator& ranks, double mine) {
  const at::Tensor total = at::full({1}, mine, at::kDouble);
  ranks.all_reduce(total, {at::kDouble, false});
  return total.item<double>();
}

/// The sum of all micro-batches' losses: first those of each rank's first micro-batch.
double sum_in_order(Communicator& ranks, const std::vector<double>& mine) {
  const at::Tensor all = at::empty({ranks.size(), std::int64_t(mine.size())}, at::kDouble);
  ranks.all_gather_into(all.view({-1}), at::tensor(mine, at::kDouble));
  const at::Tensor turns = all.t().contiguous();
  return std::accumulate(turns.const_data_ptr<double>(), turns.const_data_ptr<double>() + turns.numel(), 0.0);
}

Model model_of(const RunOptions& run, SlicePlace place = {}) {
  Model model = make_model(run.config, place);
  if (!run.lora) return model;
  add_lora(model, *run.lora);
  for (auto& unit : model.units)
    for (const Adapter& adapter : unit->adapters()) {
      unit->parameters()[adapter.b].init = Init::normal;
      unit->parameters()[adapter.b].init_scale = 0.2;
    }
  return model;
}

std::shared_ptr<WeightSource> weights_of(const RunOptions& run, const Model& model) {
  const auto drawn = std::make_shared<RandomWeights>(model, 7);
  if (run.base.empty()) return drawn;
  return std::make_shared<FreshAdapter>(weights_of_model(run.base), drawn);
}

}  // namespace

namespace {

/// Libraries choose their code for this processor at the first call of a process. A rank is a process of its own, where
/// nothing else calls at that moment; here ranks are threads, so the choice is made before they start.
void choose_code() {
  static const bool chosen = [] {
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::ones({64, 64}, type), heads = at::ones({1, 2, 16, 8}, type);
      at::scaled_dot_product_attention(heads, heads, heads, {}, 0.0, true);
      at::mm(x, x).exp().sum();
      at::bmm(x.unsqueeze(0), x.unsqueeze(0));
    }
    return true;
  }();
  (void)chosen;
}

}  // namespace

RunResult run_training(const RunOptions& given, const AfterStep& after_step, const TrackerOf& tracker_of) {
  choose_code();
  RunOptions run = given;
  MeshShape shape = MeshShape::hybrid(run.ranks / (run.context * run.tensor * run.pipeline), run.shard_degree);
  shape.context = run.context;
  shape.tensor = run.tensor;
  shape.pipeline = run.pipeline;
  const int row_ranks = shape.size(axes::rows);
  if (run.rows_in_order > 0) run.micro_batches = run.global_batch / (row_ranks * run.rows_in_order);
  RunResult result;
  result.losses.resize(run.steps);
  result.norms.resize(run.steps);
  SimWorld world({.ranks = run.ranks, .seed = run.schedule_seed, .threads_per_rank = run.threads});
  world.run([&](Communicator& communicator, int rank) {
    std::optional<TrackerScope> booked;
    if (tracker_of) booked.emplace(tracker_of(rank));
    Model model = model_of(run, {shape.tensor, shape.index(rank, MeshAxis::tensor)});
    EngineOptions options = engine_options(run);
    if (run.policy_of) options.offload = run.policy_of(rank);
    Mesh mesh(communicator, shape);
    Engine engine(chain_of(model), mesh, options);
    engine.load(*weights_of(run, model_of(run)));
    if (after_step) after_step(engine, rank, run.first_step);
    const int rows = run.global_batch / (row_ranks * run.micro_batches), row_place = mesh.index(axes::rows);
    for (int step = run.first_step; step < run.steps; ++step) {
      const double tokens = trained_tokens(std::int64_t(step) * run.global_batch, run);
      const auto context_of = [&](std::int64_t micro_batch, Batch& batch) {
        const std::int64_t first = std::int64_t(step) * run.global_batch + (micro_batch * row_ranks + row_place) * rows;
        batch = batch_of(first, rows, run);
        ForwardContext context;
        context.batch = &batch;
        context.training = true;
        context.seed = std::uint64_t(step) + 1;
        context.first_sample = first;
        context.logits_bytes = run.logits_bytes;
        return context;
      };
      const at::Tensor loss_sum = run.under_way > 1
                                      ? pipelined_gradients(engine, run, 1.0 / tokens, context_of)
                                      : accumulate_gradients(engine, run.micro_batches, 1.0 / tokens, context_of);
      if (run.keep_gradients && step == run.first_step)
        engine.export_gradients([&](const TensorSpec& spec, const at::Tensor& value) {
          if (rank == 0) result.gradients[spec.name] = value.clone();
        });
      const StepResult found = engine.update({.lr = run.lr, .max_norm = run.max_norm}, loss_sum).wait();
      if (run.after_update) run.after_update(rank, found);
      const double loss = run.rows_in_order > 0 ? sum_in_order(mesh.along(axes::tokens), found.losses)
                                                : sum_over_ranks(mesh.along(axes::tokens), found.loss_sum());
      if (rank == 0) {
        result.losses[step] = loss / tokens;
        result.norms[step] = found.norm;
      }
      if (after_step) after_step(engine, rank, step + 1);
    }
    engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) {
      if (rank == 0) result.weights[spec.name] = value.clone();
    });
  });
  for (int r = 0; r < run.ranks; ++r) result.calls.push_back(world.calls(r));
  return result;
}

double largest_difference(const RunResult& a, const RunResult& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    worst = std::max(worst, std::abs(a.losses[i] - b.losses[i]));
    worst = std::max(worst, std::abs(a.norms[i] - b.norms[i]));
  }
  EXPECT_EQ(a.weights.size(), b.weights.size());
  for (const auto& [name, weight] : a.weights)
    worst = std::max(worst, (weight.to(at::kDouble) - b.weights.at(name).to(at::kDouble)).abs().max().item<double>());
  EXPECT_EQ(a.gradients.size(), b.gradients.size());
  for (const auto& [name, gradient] : a.gradients)
    worst =
        std::max(worst, (gradient.to(at::kDouble) - b.gradients.at(name).to(at::kDouble)).abs().max().item<double>());
  return worst;
}

}  // namespace zero::testing

#include "tests/sim/training_run.h"

#include <algorithm>

#include "models/initial_weights.h"

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
  std::uint64_t state = std::uint64_t(sample) * 0x9E3779B97F4A7C15ull + 1;
  std::int64_t token = sample % vocab;
  for (auto& t : tokens) {
    t = token;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    token = (token + 1 + std::int64_t(state >> 62)) % vocab;
  }
  return tokens;
}

namespace {

Batch batch_of(std::int64_t first, int rows, int seq_len, std::int64_t vocab) {
  Batch batch;
  batch.ids = at::empty({rows, seq_len}, at::kLong);
  batch.targets = at::empty({rows, seq_len}, at::kLong);
  for (int b = 0; b < rows; ++b) {
    const auto tokens = sample_tokens(first + b, seq_len, vocab);
    std::copy(tokens.begin(), tokens.end() - 1, batch.ids.data_ptr<std::int64_t>() + b * seq_len);
    std::copy(tokens.begin() + 1, tokens.end(), batch.targets.data_ptr<std::int64_t>() + b * seq_len);
  }
  return batch;
}

EngineOptions engine_options(const RunOptions& run) {
  EngineOptions options;
  options.plan = ShardPlan::for_stage(run.stage);
  options.precision = {run.compute, run.master, run.micro_batches > 1 ? run.master : run.compute,
                       run.master == at::kDouble ? at::kDouble : at::kFloat};
  options.shard_degree = run.shard_degree;
  options.recompute_every = run.recompute_every;
  options.overlap = run.overlap;
  return options;
}

}  // namespace

RunResult run_training(const RunOptions& run, const AfterStep& after_step, const LedgerOf& ledger_of) {
  RunResult result;
  result.losses.resize(run.steps);
  result.norms.resize(run.steps);
  SimWorld world({.ranks = run.ranks, .seed = run.schedule_seed});
  world.run([&](Communicator& communicator, int rank) {
    std::optional<LedgerScope> booked;
    if (ledger_of) booked.emplace(ledger_of(rank));
    Model model = make_llama(run.config);
    Chain chain;
    for (auto& unit : model.units) chain.push_back(unit.get());
    Engine engine(chain, communicator, engine_options(run));
    RandomWeights weights(model, 7);
    engine.load(weights);
    if (after_step) after_step(engine, rank, 0);
    const int rows = run.global_batch / (run.ranks * run.micro_batches);
    const double tokens = double(run.global_batch) * run.seq_len;
    for (int step = 0; step < run.steps; ++step) {
      double loss_sum = 0;
      for (int a = 0; a < run.micro_batches; ++a) {
        const std::int64_t first = std::int64_t(step) * run.global_batch + (a * run.ranks + rank) * rows;
        const Batch batch = batch_of(first, rows, run.seq_len, run.config.vocab_size);
        Pass pass;
        pass.batch = &batch;
        pass.training = true;
        const at::Tensor loss = engine.forward(pass, {a == 0, a + 1 == run.micro_batches});
        engine.backward(loss, 1.0 / tokens);
        loss_sum += loss.item<double>();
      }
      const double norm = engine.gradient_norm();
      const at::Tensor total = at::full({1}, loss_sum, at::kDouble);
      communicator.all_reduce(total, {at::kDouble, false});
      engine.step(0.01, std::min(1.0, run.max_norm / (norm + 1e-6)));
      if (rank == 0) {
        result.losses[step] = total.item<double>() / tokens;
        result.norms[step] = norm;
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

}  // namespace zero::testing

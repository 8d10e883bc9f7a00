#include "tests/unit/train/trainer_bench.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/files/past_refusal.h"
#include "base/memory_tracker.h"
#include "base/random.h"
#include "comm/agreement/agreement.h"
#include "comm/sim/sim_world.h"
#include "zero/checkpoint/resume_states.h"
#include "zero/config/offload_policy.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/core/chain.h"
#include "zero/core/gradient_accumulation.h"
#include "zero/optim/schedule.h"
#include "zero/output/output_dir.h"
#include "zero/output/result_folder.h"
#include "zero/train/resume.h"
#include "zero/train/training.h"

namespace zero::testing {
namespace {

constexpr int seq_len = 6, vocabulary = 37;
constexpr std::int64_t rows = 96;

thread_local std::int64_t row_in_work = -1;  // of a rank

/// The last token is in broken rows alone.
class NumberedRows final : public RowSource {
 public:
  NumberedRows(std::int64_t size, std::function<void(std::int64_t)> before, const std::set<std::int64_t>& broken = {})
      : size_(size), before_(std::move(before)), broken_(broken) {}
  std::int64_t size() const override { return size_; }
  Row row(std::int64_t index) const override {
    if (before_) before_(index);
    row_in_work = index;
    Row row;
    for (int t = 0; t <= seq_len; ++t) {
      const bool last = t == 2 && broken_.contains(index);
      const auto id =
          last ? vocabulary - 1 : std::int64_t(mix_seed(std::uint64_t(index), std::uint64_t(t)) % (vocabulary - 1));
      if (t < seq_len) row.ids.push_back(id);
      if (t > 0) row.targets.push_back(id);
    }
    return row;
  }
  std::int64_t trained_tokens(std::int64_t) const override { return seq_len; }
  std::int64_t length(std::int64_t) const override { return seq_len; }
  std::string describe() const override { return "numbered"; }

 private:
  std::int64_t size_;
  std::function<void(std::int64_t)> before_;
  std::set<std::int64_t> broken_;
};

/// Others' weights, but for an infinity in the last row of the embedding.
class BrokenWeights final : public WeightSource {
 public:
  explicit BrokenWeights(std::shared_ptr<WeightSource> others) : others_(std::move(others)) {}
  void check(const std::vector<TensorSpec>& tensors) override { others_->check(tensors); }
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& values) override {
    others_->read(tensor, begin, count, values);
    const std::int64_t broken = tensor.numel() - 1;
    if (tensor.name.ends_with("embed_tokens.weight") && begin <= broken && broken < begin + count)
      values.narrow(0, broken - begin, 1).fill_(std::numeric_limits<double>::infinity());
  }

 private:
  std::shared_ptr<WeightSource> others_;
};

Config config_of(const BenchRun& run) {
  const std::string words =
      "[job]\noutput_dir = \"/disk/run\"\n[model]\npreset = \"llama-tiny\"\nvocab_size = 37\nhidden_size = 24\n"
      "intermediate_size = 44\nnum_hidden_layers = 2\nnum_attention_heads = 6\nnum_key_value_heads = 2\nhead_dim = 4\n"
      "initializer_range = 0.2\nmax_position_embeddings = 64\n[data]\ntrain = [\"rows.bin\"]\n[training]\nsteps = " +
      std::to_string(run.steps) + "\nseq_len = 6\nprecision = \"fp32\"\n";
  return parse_config(words + run.groups, "run.toml", run.settings);
}

SampleOrder order_of(const Config& config, const BatchArithmetic& batch) {
  return SampleOrder({rows, batch.global_batch_size, std::uint64_t(config.training.seed), config.data.shuffle});
}

/// The parts that a rank trains with.
struct Rank {
  Rank(const BenchRun& run, const Config& config, Communicator& communicator)
      : batch(BatchArithmetic::of(config, run.ranks)),
        made(make_run_model(config, model_config_of(config), true)),
        mesh(communicator, batch.mesh),
        engine(chain_of(made.model), mesh, options_of(run, config, batch, communicator.rank())) {
    if (!run.broken_rows.empty()) made.weights = std::make_shared<BrokenWeights>(made.weights);
    engine.load(*made.weights);
    data.training = std::make_unique<Loader>(
        std::make_shared<NumberedRows>(rows, run.before_row, run.broken_rows), order_of(config, batch),
        LoaderOptions{communicator.rank(), batch.ranks, batch.local_batch_size, batch.global_batch_size});
    if (run.validation_rows > 0)
      data.validation = std::make_unique<ValidationLoader>(
          std::make_shared<NumberedRows>(run.validation_rows, run.before_validation_row), communicator.rank(),
          batch.ranks, batch.local_batch_size);
    for (const Plant& plant : run.plants)
      trained(plant).register_hook(
          [plant](const at::Tensor& gradient) { return plant.row == row_in_work ? plant.change(gradient) : gradient; });
  }

  at::Tensor& trained(const Plant& plant) {
    int before = plant.parameter;
    for (Parameter& parameter : made.model.units[std::size_t(plant.unit)]->parameters())
      if (parameter.trainable && before-- == 0) return parameter.tensor;
    throw InternalError("no such parameter");
  }

  static EngineOptions options_of(const BenchRun& run, const Config& config, const BatchArithmetic& batch, int rank) {
    EngineOptions options = engine_options_of(config, batch);
    options.offload = offload_policy_of(config, rank, at::kCPU);
    options.write_gradients = run.plants.empty();  // hooks change what autograd brings
    return options;
  }

  BatchArithmetic batch;
  RunModel made;
  Mesh mesh;
  Engine engine;
  TrainingData data;
};

std::map<std::string, at::Tensor> weights_of(Engine& engine) {
  std::map<std::string, at::Tensor> weights;
  engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) { weights[spec.name] = value.clone(); });
  return weights;
}

}  // namespace

namespace {

/// Does what train_run() does. The position is a checkpoint's, if there is one.
std::unique_ptr<MetricsWriter> begin_in_folder(const BenchRun& run, const Config& config, Engine& engine,
                                               CheckpointFolders& folders, const std::shared_ptr<FileCalls>& calls,
                                               Communicator& ranks, std::optional<RunPosition>& position) {
  const std::string& path = config.job.output_dir;
  const FormerRun former = run.resume      ? FormerRun::resumed
                           : run.overwrite ? FormerRun::overwritten
                                           : FormerRun::refused;
  all_or_none(ranks, [&] {
    if (ranks.rank() == 0) check_output_dir(path, former, {}, *calls);
  });
  if (run.resume && check_resume({config, {}, {}}, folders, *calls, ranks))
    position = resume_states(engine, folders, *calls, ranks);
  std::unique_ptr<MetricsWriter> metrics;
  all_or_none(ranks, [&] {
    if (ranks.rank() == 0)
      metrics = open_metrics({path, former, {}, resolved_toml(config)}, position.value_or(RunPosition()), calls);
  });
  return metrics;
}

/// A result of one file.
void end_in_folder(const Config& config, const std::shared_ptr<FileCalls>& calls, Communicator& ranks) {
  on_first(ranks, [&] {
    const std::string folder = config.job.output_dir + "/model";
    ResultFolder result(folder, calls);
    result.mark();
    NewFile(folder + "/config.json", *calls).publish();
    result.finish();
  });
}

}  // namespace

BenchResult train(const BenchRun& run, MemoryDisk& disk) {
  const Config config = config_of(run);
  BenchResult result;
  std::vector<std::string> errors(std::size_t(run.ranks));
  const auto train_rank = [&](Communicator& communicator, int rank) {
    Rank self(run, config, communicator);
    MemoryTracker tracker;
    const std::shared_ptr<FileCalls> calls = disk.calls(rank == 0 && run.first_ranks_disk ? run.first_ranks_disk
                                                        : rank + 1 == run.ranks           ? run.last_ranks_disk
                                                                                          : nullptr);
    CheckpointFolders folders(*calls, "/disk/run/checkpoints");
    Checkpoints checkpoints(config.checkpoint,
                            {self.engine, {}, folders.root(), *calls, communicator, {}, copies_checkpoints(config)});
    RunRecords records;
    std::optional<RunPosition> done;
    if (run.has_folder)
      records.metrics = begin_in_folder(run, config, self.engine, folders, calls, communicator, done);
    else if (run.resume)
      done = resume_states(self.engine, folders, *calls, communicator);
    RunPosition position = done.value_or(RunPosition());
    if (rank == 0 && !run.metrics.empty())
      records.metrics = std::make_unique<MetricsWriter>(run.resume ? MetricsWriter::resume(run.metrics, position.steps)
                                                                   : MetricsWriter(run.metrics));
    check_owed_validation(position, records.metrics.get(), communicator);
    RunClock clock = run.now ? RunClock(clock_options_of(config), run.now(rank), [&] { return run.now(rank); })
                             : RunClock({}, RunClock::Clock::now());
    const auto restore = [&] { return resume_states(self.engine, folders, *calls, communicator, "none"); };
    Training training(config, run.steps, self.engine,
                      {self.data, records, tracker, checkpoints, clock, nullptr, restore});
    if (done) training.resume(position);
    if (done && run.has_folder) checkpoints.resumed(position.steps);
    const auto note = [&] {
      if (rank == 0) result.saved_steps = checkpoints.saved_steps();
    };
    try {
      past_refusal([&] {
        training.run();
        note();
        if (run.has_folder) end_in_folder(config, calls, communicator);
      });
      const auto weights = weights_of(self.engine);
      if (rank == 0) result.weights = weights;
    } catch (const Error&) {
      note();
      throw;
    }
  };
  SimWorld(run.ranks).run([&](Communicator& communicator, int rank) {
    try {
      train_rank(communicator, rank);
    } catch (const Error& error) {
      errors[std::size_t(rank)] = error.what();
      if (rank == 0) result.code = error.code();
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, errors.front());
  result.error = errors.front();
  const std::unique_ptr<FileCalls> calls = disk.calls();
  CheckpointFolders folders(*calls, "/disk/run/checkpoints");
  result.checkpoints = folders.steps();
  if (!result.checkpoints.empty())
    result.passed = read_manifest(*calls, folders.path(result.checkpoints.front())).position.passed;
  return result;
}

std::map<std::string, at::Tensor> train_without(const std::set<std::int64_t>& steps, const BenchRun& run) {
  const Config config = config_of(run);
  std::map<std::string, at::Tensor> result;
  SimWorld(run.ranks).run([&](Communicator& communicator, int rank) {
    Rank self(run, config, communicator);
    for (std::int64_t step = 0; step < run.steps; ++step) {
      if (steps.contains(step + 1)) continue;
      const at::Tensor loss = accumulate_gradients(
          self.engine, self.data.training->micro_batches(), 1.0 / double(self.data.training->trained_tokens(step)),
          [&](std::int64_t a, Batch& batch) {
            batch = self.data.training->batch(step, a);
            ForwardContext context;
            context.batch = &batch;
            context.training = true;
            context.seed = mix_seed(std::uint64_t(config.training.seed), std::uint64_t(step));
            context.first_sample = self.data.training->first_sample(step, a);
            return context;
          });
      const double rate = learning_rate(schedule_of(config, run.steps), step);
      const double part = schedule_part(schedule_of(config, run.steps), step);
      const UpdateRule rule{.lr = rate, .max_norm = config.training.max_norm, .schedule = part};
      EXPECT_TRUE(self.engine.update(rule, loss).wait().taken) << "step " << step + 1;
    }
    const auto weights = weights_of(self.engine);
    if (rank == 0) result = weights;
  });
  return result;
}

std::int64_t row_of(const BenchRun& run, std::int64_t step, int rank, int micro_batch) {
  const Config config = config_of(run);
  const BatchArithmetic batch = BatchArithmetic::of(config, run.ranks);
  return order_of(config, batch).rows_of_step(step - 1).at(std::size_t(micro_batch * run.ranks + rank));
}

std::function<at::Tensor(const at::Tensor&)> with_last(double value) {
  return [value](const at::Tensor& gradient) {
    at::Tensor changed = gradient.clone(at::MemoryFormat::Contiguous);
    changed.view(-1)[changed.numel() - 1] = value;
    return changed;
  };
}

void expect_equal(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) EXPECT_TRUE(at::equal(value, b.at(name))) << name;
}

}  // namespace zero::testing

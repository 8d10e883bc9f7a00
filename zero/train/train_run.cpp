#include "zero/train/train_run.h"

#include <ATen/Parallel.h>

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <thread>

#include "comm/device_choice.h"
#include "comm/error.h"
#include "comm/log.h"
#include "comm/stream.h"
#include "models/device_setting.h"
#include "models/matmul_setting.h"
#include "zero/data/together.h"
#include "zero/train/checkpoints.h"
#include "zero/train/decisive_settings.h"
#include "zero/train/output_dir.h"
#include "zero/train/resume.h"
#include "zero/train/run_data.h"
#include "zero/train/run_lock.h"
#include "zero/train/run_model.h"
#include "zero/train/save_adapter.h"
#include "zero/train/save_model.h"
#include "zero/train/setup.h"
#include "zero/train/shared_directory.h"
#include "zero/train/state_homes.h"
#include "zero/train/stop_signal.h"
#include "zero/train/trainer.h"
#include "zero/train/verdict.h"

namespace zero {
namespace {

/// The checked configuration and what follows from it without looking at data.
struct Plan {
  Config config;
  BatchArithmetic batch;
  ModelConfig model;
  std::optional<Tokenizer> tokenizer;
  c10::Device device = at::kCPU;
};

Plan make_plan(const TrainArguments& arguments, int ranks) {
  Plan plan;
  plan.config = load_config(arguments.config, arguments.overrides);
  refuse_unsupported(plan.config);
  validate_for(plan.config, ranks);
  check_files(plan.config);
  plan.batch = BatchArithmetic::of(plan.config, ranks);
  plan.model = model_config_of(plan.config);
  validate_for_context(plan.config, plan.model.max_position_embeddings);
  const FormerRun former = arguments.resume ? FormerRun::resumed : arguments.overwrite ? FormerRun::overwritten : FormerRun::refused;
  if (!arguments.dry_run && arguments.preview.examples == 0) check_output_dir(plan.config.job.output_dir, former);
  plan.tokenizer = tokenizer_of(plan.config, plan.model);
  return plan;
}

MpiOptions mpi_options_of(const Config& config) {
  MpiOptions options;
  options.deadline = std::chrono::duration<double>(config.comm.deadline_seconds);
  options.shared_memory = config.comm.shared_memory == "on"    ? SharedMemory::on
                          : config.comm.shared_memory == "off" ? SharedMemory::off
                                                               : SharedMemory::automatic;
  return options;
}

// Ranks of a node share its cores; OMP_NUM_THREADS has the last word.
void set_threads(const World& world, c10::Device device) {
  if (std::getenv("OMP_NUM_THREADS")) return;
  at::set_num_threads(world.cores());
  const int cores = int(std::thread::hardware_concurrency());
  if (world.rank() == 0 && device.is_cpu() && world.cores() == 1 && cores >= 2 * world.local_size())
    log_warning("this rank may use one of the ", cores, " cores of its node. mpirun --bind-to none, or srun --cpus-per-task=N, gives ranks more");
}

void describe(const World& world, const Plan& plan, const Model& model, std::int64_t steps) {
  log_info("model: ", model.numel(), " parameters in ", model.units.size(), " units, ", plan.config.training.precision);
  log_info("stage ", plan.config.zero.stage, ": ", ShardPlan::for_stage(int(plan.config.zero.stage)).describe());
  log_info(world.size(), " ranks on ", world.nodes(), " node(s), ", at::get_num_threads(), " thread(s) each; ", plan.batch.describe(), "; ", steps, " steps");
}

/// Rank 0 prints what the run will take of its node; a node that lacks it ends the run here.
void give_verdict(World& world, const Plan& plan, const Model& model, bool dry_run) {
  world.agree([&] {
    const NodeBudget budget = node_budget(plan.config, world.local_size(), plan.device);
    const Verdict verdict = judge_memory(plan.config, plan.batch, model, budget);
    if (world.rank() == 0 && dry_run) std::cout << resolved_toml(plan.config) << '\n' << plan.batch.describe() << '\n';
    if (world.rank() == 0) std::cout << verdict.table << std::flush;
    require_fit(plan.config, verdict, budget);
    if (!dry_run) require_checkpoint_room(plan.config, verdict, budget);
  });
}

c10::Device device_of(const Config& config, const World& world) {
  const c10::Device device = choose_device({config.training.device, int(config.comm.ranks_per_gpu)}, world.local_rank(), world.local_size());
  if (device.is_cuda() && config.offload.parameters != "none" && config.offload.optimizer == "none")
    throw InputError(config.where("offload.parameters") + ": on a GPU the weights live on the host only where the optimizer does; set offload.optimizer too");
  return device;
}

/// What a checkpoint tells of the run.
RunDescription describe_run(const World& world, const Plan& plan) {
  RunDescription run;
  run.ranks = world.size();
  run.stage = int(plan.config.zero.stage);
  run.settings = decisive_settings(plan.config, plan.batch, plan.model);
  run.configuration = resolved_toml(plan.config);
  run.directory = std::filesystem::current_path().string();
  run.model_config = format_model_config(plan.model, "float32");
  return run;
}

void check_length(const Plan& plan, std::int64_t done, std::int64_t steps) {
  if (done <= steps) return;
  throw InputError(text(plan.config.where(plan.config.training.steps ? "training.steps" : "training.epochs"), ": the run is to end after ", steps,
                        " steps, and its checkpoint is of step ", done, ": name more"));
}

Records open_records(World& world, const Plan& plan, FormerRun former, std::int64_t done, std::int64_t steps) {
  const std::string& output = plan.config.job.output_dir;
  Records records;
  world.agree([&] {
    if (world.rank() != 0) return;
    prepare_output_dir(output, former, resolved_toml(plan.config));
    const std::string path = output + "/metrics.jsonl";
    records.metrics = std::make_unique<MetricsWriter>(former == FormerRun::resumed ? MetricsWriter::resume(path, done) : MetricsWriter(path));
    records.progress = std::make_unique<Progress>(std::cout, ProgressOptions{steps, 0, terminal_columns()});
  });
  if (world.nodes() > 1 && plan.config.checkpoint.interval > 0)
    require_shared(output, world.communicator(), [&](const std::function<void()>& phase) { world.agree(phase); });
  return records;
}

}  // namespace

int train_run(World& world, const TrainArguments& arguments) {
  Ledger ledger;
  LedgerScope booked(ledger);
  Plan plan;
  RunModel run;
  world.agree([&] {
    plan = make_plan(arguments, world.size());
    plan.device = device_of(plan.config, world);
    run = make_run_model(plan.config, plan.model, !arguments.dry_run && arguments.preview.examples == 0);
    if (arguments.preview.examples > 0 && world.rank() == 0) print_preview(plan.config, plan.model, plan.tokenizer, arguments.preview);
  });
  if (arguments.preview.examples > 0) return 0;
  set_threads(world, plan.device);
  give_verdict(world, plan, run.model, arguments.dry_run);
  if (arguments.dry_run) return 0;
  world.configure(mpi_options_of(plan.config));
  Communicator& communicator = world.communicator();
  check_same_device_type(plan.device, communicator);
  const c10::OptionalDeviceGuard device_guard(plan.device);
  std::string device_line;
  if (plan.device.is_cuda())
    device_line = prepare_device(plan.device.index(), precision_of(plan.config, plan.batch).compute, plan.config.job.deterministic);
  const std::string& output = plan.config.job.output_dir;
  FileCalls calls;
  CheckpointFolders folders(calls, checkpoints_root(plan.config));
  RunDescription description;     // these two are rank 0's
  std::optional<RunLock> lock;
  run_on_first(communicator, [&](const Heartbeat&) {
    description = describe_run(world, plan);
    if (arguments.resume) lock.emplace(output);
  });
  std::optional<std::int64_t> done;   // steps of the run that goes on
  if (arguments.resume) done = check_resume({plan.config, description, arguments.accepted_changes}, folders, calls, communicator);
  TrainingData data = open_training_data(plan.config, plan.batch, plan.model, plan.tokenizer, communicator);
  const std::int64_t steps = steps_of(plan.config, data);
  if (done) check_length(plan, *done, steps);

  Records records;
  if (!done) {
    run_on_first(communicator, [&](const Heartbeat&) { if (!lock) lock.emplace(output); });
    records = open_records(world, plan, FormerRun::overwritten, 0, steps);
  }
  const std::string matmul = choose_fast_matmul();
  if (world.rank() == 0) {
    log_info(matmul);
    if (!device_line.empty()) log_info(device_line);
    describe(world, plan, run.model, steps);
    if (run.lora) log_info(trainable_line(run.model));
    for (const std::string& doubt : doubts_about(plan.config, run)) log_warning(doubt);
  }
  const StopSignal stop;
  Chain chain;
  for (auto& unit : run.model.units) chain.push_back(unit.get());
  const std::unique_ptr<Communicator> on_device =
      make_device_communicator(communicator, plan.device, {mpi_options_of(plan.config).deadline, int(plan.config.comm.ranks_per_gpu)});
  EngineOptions engine_options = engine_options_of(plan.config, plan.batch);
  engine_options.device = plan.device;
  world.agree([&] { engine_options.homes = state_homes_of(plan.config, world.rank(), plan.device); });
  engine_options.host = &communicator;
  engine_options.overlap = on_device != nullptr && world.size() > 1;
  const ComputeStream compute(plan.device);
  Engine engine(chain, on_device ? *on_device : communicator, engine_options);
  world.agree([&] { engine.load(*run.weights, /*frozen_only=*/done.has_value()); });
  const Agreement agree = [&](const std::function<void()>& phase) { world.agree(phase); };
  RunPosition position;
  if (done) {
    position = resume_states(engine, folders, calls, agree);
    records = open_records(world, plan, FormerRun::resumed, position.steps, steps);
  }

  Checkpoints checkpoints(plan.config.checkpoint, {engine, std::move(description), folders.root(), calls, agree});
  Trainer trainer(plan.config, steps, engine, {data, records, ledger, &checkpoints, &stop});
  if (done) trainer.resume(position);
  if (trainer.run() == RunEnd::stopped) return static_cast<int>(ExitCode::stopped);
  const std::string saved = output + (run.lora ? "/adapter" : "/model");
  if (run.lora) {
    save_adapter(engine, *run.lora, run.pissa.get(), saved, base_name_of(plan.config));
  } else {
    save_model(engine, run.model, saved, write_options_of(plan.config));
  }
  if (world.rank() == 0) log_info("the ", run.lora ? "adapter" : "model", " is in ", saved);
  if (checkpoints.failed()) throw Error(text("the run is finished, but its last checkpoint could not be written"));
  return 0;
}

}  // namespace zero

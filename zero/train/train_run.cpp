#include "zero/train/train_run.h"

#include <ATen/Parallel.h>

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/past_refusal.h"
#include "base/log.h"
#include "base/process/process_facts.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "comm/stream.h"
#include "comm/world/device_backends.h"
#include "comm/world/device_choice.h"
#include "models/families/config_json.h"
#include "models/formats/base_model.h"
#include "models/nn/matmul_setting.h"
#include "models/ops/cuda/device_setting.h"
#include "offload/memory/process_memory.h"
#include "zero/checkpoint/resume_states.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/config/mistakes.h"
#include "zero/config/model_paths.h"
#include "zero/config/offload_policy.h"
#include "zero/config/optimizer_settings.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/config/source_files.h"
#include "zero/core/chain.h"
#include "zero/output/output_dir.h"
#include "zero/output/run_lock.h"
#include "zero/output/run_mark.h"
#include "zero/output/shared_directory.h"
#include "zero/train/checkpoints.h"
#include "zero/train/loss_curve.h"
#include "zero/train/result/save_result.h"
#include "zero/train/resume.h"
#include "zero/train/resume_settings.h"
#include "zero/train/run_data.h"
#include "zero/train/run_estimate.h"
#include "zero/train/spare_states.h"
#include "zero/train/start_agreement.h"
#include "zero/train/stop_signal.h"
#include "zero/train/trainer.h"

namespace zero {
namespace {

/// The checked configuration and what follows from it without looking at data.
struct Plan {
  Config config;
  BatchArithmetic batch;
  ModelConfig model;
  std::optional<Tokenizer> tokenizer;
  c10::Device device = at::kCPU;
  FormerRun former = FormerRun::refused;

  /// Whether this is an estimate for a model that is there by its config.json alone.
  bool lacks_weights(const TrainArguments& arguments) const {
    return arguments.dry_run && config.model.path && !holds_weights(*config.model.path);
  }
};

/// What must not be lost to the run. The file that a run wrote of its own configuration is in memory when that run is
/// resumed.
std::vector<ReadPath> reads_of(const Plan& plan, const TrainArguments& arguments) {
  std::vector<ReadPath> reads = read_paths_of(plan.config);
  if (arguments.resume && is_same_place(plan.config.source, plan.config.job.output_dir + "/config.toml"))
    std::erase_if(reads, [&](const ReadPath& read) { return read.name == "the configuration"; });
  return reads;
}

/// Of the command line: what changes the run, beside the configuration.
std::vector<std::string> words_of(const TrainArguments& arguments) {
  std::vector<std::string> words = arguments.accepted_changes;
  for (const auto& [given, word] : {std::pair{arguments.overwrite, "--overwrite"},
                                    {arguments.resume, "--resume"},
                                    {arguments.checkpoint_first, "--checkpoint-first"},
                                    {arguments.dry_run, "--dry-run"},
                                    {arguments.preview.examples > 0, "--preview"}})
    if (given) words.emplace_back(word);
  return words;
}

Plan make_plan(const TrainArguments& arguments, int ranks) {
  check_accepted(arguments.accepted_changes);
  Plan plan;
  plan.config = load_config(arguments.config, arguments.overrides);
  if (plan.config.lora) plan.config.lora->adapter = adapter_of(plan.config.lora->adapter);
  const bool here = !arguments.target.named();  // elsewhere other files may be there
  plan.former = arguments.resume      ? FormerRun::resumed
                : arguments.overwrite ? FormerRun::overwritten
                                      : FormerRun::refused;
  Mistakes mistakes;
  mistakes.allow([&] { validate_for(plan.config, ranks); });
  const FileNeed wanted = arguments.dry_run ? FileNeed::estimate : FileNeed::run;
  if (here) mistakes.allow([&] { check_files(plan.config, wanted); });
  // Without another mistake this is asked under the lock.
  if (!mistakes.none() && !arguments.dry_run && arguments.preview.examples == 0)
    mistakes.allow([&] {
      FileCalls calls;
      check_output_dir(plan.config.job.output_dir, plan.former, reads_of(plan, arguments), calls);
    });
  mistakes.tell();
  plan.batch = BatchArithmetic::of(plan.config, ranks);
  plan.config.training.global_batch_size = plan.batch.global_batch_size;  // what is used is what is written down
  plan.model = model_config_of(plan.config);
  plan.config.checkpoint.export_dtype = export_dtype_of(plan.config);
  if (plan.lacks_weights(arguments)) plan.model.dropout.clear();  // told by tell_what_is_missing()
  validate_for_model(plan.config, plan.model);
  return plan;
}

/// The model of the plan. What a user can have got wrong about it is found with its weights, then with its adapter, then
/// with its tokenizer.
RunModel open_model(Plan& plan, const TrainArguments& arguments) {
  RunModel run =
      make_run_model(plan.config, plan.model, arguments.preview.examples == 0 && !plan.lacks_weights(arguments));
  if (arguments.target.named() || plan.lacks_weights(arguments)) return run;
  plan.tokenizer = tokenizer_of(plan.config, plan.model);
  check_result(plan.config, plan.model);
  return run;
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
void set_threads(const Job& job, c10::Device device) {
  if (std::getenv("OMP_NUM_THREADS")) return;
  at::set_num_threads(job.cores());
  const int cores = int(std::thread::hardware_concurrency());
  if (job.rank() == 0 && device.is_cpu() && job.cores() == 1 && cores >= 2 * job.local_size())
    log_warning("this rank may use one of the ", cores,
                " cores of its node. mpirun --bind-to none, or srun --cpus-per-task=N, gives ranks more");
}

std::string counted(std::int64_t number, const std::string& noun) {
  return text(number, " ", noun, number == 1 ? "" : "s");
}

/// `order` of the training rows.
void describe(const Job& job, const Plan& plan, const Model& model, const SampleOrder& order, std::int64_t steps) {
  log_info("model: ", counted(model.numel(), "parameter"), " in ", counted(std::int64_t(model.units.size()), "unit"),
           ", ", plan.config.training.precision);
  log_info("stage ", plan.config.zero.stage, ": ", ShardPlan::for_stage(int(plan.config.zero.stage)).describe());
  log_info(counted(job.size(), "rank"), " on ", counted(job.nodes(), "node"), ", ",
           counted(at::get_num_threads(), "thread"), " each; ", plan.batch.describe());
  const std::int64_t rows = order.options().rows;
  const double epochs = order.epochs_after(steps), passes = double(plan.batch.global_batch_size) / double(rows);
  log_info(counted(steps, "step"), ", ", std::fixed, std::setprecision(epochs < 10 ? 2 : 0), epochs, " epochs of ",
           counted(rows, "sequence"));
  if (passes > 1)
    log_warning("a step of ", plan.batch.global_batch_size, " sequences passes over the ", rows, " of the data ",
                std::fixed, std::setprecision(1), passes, " times: lower the global batch, or give more data");
}

/// What the run itself would want of a model whose config.json alone is there.
void tell_what_is_missing(const Plan& plan, const TrainArguments& arguments) {
  if (!plan.lacks_weights(arguments)) return;
  const std::string where = plan.config.where("model.path");
  if (!arguments.target.named())
    log_warning(where, ": the model's weights are not there; its config.json is enough for this estimate");
  if (!model_config_of(plan.config).dropout.empty())
    log_warning(where,
                ": the model asks for dropout; training refuses it until those fields of its config.json are 0.0");
}

void tell_doubts(const Plan& plan, RunModel& run) {
  for (const std::string& doubt : config_warnings(plan.config, run)) log_warning(doubt);
}

/// Of a run that is over: `unwritten` lines of its metrics included.
void tell_of_losses(const Plan& plan, const std::string& unwritten) {
  const std::vector<double> losses = logged_losses(plan.config.job.output_dir + "/metrics.jsonl", unwritten);
  const std::string doubt = doubt_about_losses(losses, plan.model.vocab_size, keys_of_rates(plan.config.optimizer));
  if (!doubt.empty()) log_warning(doubt);
}

/// The first line of the run's config.toml.
std::string written_by(const Job& job, const TrainArguments& arguments) {
  return text("# zero_train ", arguments.version, ", ", counted(job.size(), "rank"), "\n");
}

c10::Device device_of(const Config& config, const Job& job) {
  const c10::Device device =
      choose_device({config.training.device, int(config.comm.ranks_per_gpu)}, job.local_rank(), job.local_size());
  if (device.is_cuda() && config.offload.parameters != "none" && config.offload.optimizer == "none")
    throw InputError(
        config.where("offload.parameters") +
        ": on a GPU the weights live on the host only where the optimizer does; set offload.optimizer too");
  return device;
}

/// What a checkpoint tells of the run.
RunDescription describe_run(const Job& job, const Plan& plan, FileCalls& calls) {
  RunDescription run;
  run.ranks = job.size();
  run.stage = int(plan.config.zero.stage);
  run.threads = at::get_num_threads();
  run.processor = processor_name();
  run.settings = resume_settings(plan.config, plan.batch, plan.model, job.node_cores());
  run.configuration = resolved_toml(plan.config);
  run.directory = std::filesystem::current_path().string();
  run.model_config = format_model_config(plan.model, "float32");
  run.sources = source_marks(source_files_of(plan.config));
  run.id = plan.former == FormerRun::resumed ? run_id_of(plan.config.job.output_dir, calls) : new_run_id();
  return run;
}

void check_length(const Plan& plan, std::int64_t done, std::int64_t steps) {
  if (done <= steps) return;
  throw InputError(text(plan.config.where(plan.config.training.steps ? "training.steps" : "training.epochs"),
                        ": the run is to end after ", steps, " steps, and its checkpoint is of step ", done,
                        ": name more"));
}

/// Of a run that goes on.
void tell_what_is_left(const RunPosition& position, std::int64_t steps, bool can_validate) {
  const bool owes = !position.owed_validation.empty();
  if (owes && !can_validate)
    log_warning("the run was stopped before the validation of step ", position.steps,
                ", which is left out: training.validation_interval is 0 now");
  if (position.steps == steps)
    log_info(
        steps == 1 ? "the one step was" : text("all ", steps, " steps were"), " done: ",
        owes && can_validate ? "the last one's validation and the result follow" : "only the result is written anew");
}

/// On several nodes every rank must see the directory, which rank 0's lock has made. Collective.
void check_sharing(Job& job, const CheckpointConfig& config, const std::string& output, FileCalls& calls) {
  if (job.nodes() == 1) return;
  if (config.is_regular())
    require_shared(output, job.control(), calls);
  else if (const auto why = why_not_shared(output, job.control(), calls); why && job.rank() == 0)
    log_warning(
        "job.output_dir = \"", output, "\" ", *why,
        ": the run needs no checkpoints ([checkpoint] interval = 0), but where a signal or job.time_limit stops it, "
        "what it trained is lost: name a directory on a file system that all nodes share");
}

Records open_records(Job& job, const Plan& plan, const TrainArguments& arguments, const std::string& id,
                     const RunPosition& position, std::int64_t steps, const std::shared_ptr<FileCalls>& calls) {
  const std::string& output = plan.config.job.output_dir;
  Records records;
  all_or_none(job.control(), [&] {
    if (job.rank() != 0) return;
    const std::string configuration = written_by(job, arguments) + resolved_toml(plan.config);
    records.metrics =
        open_metrics({output, plan.former, reads_of(plan, arguments), configuration, id}, position, calls);
    records.progress =
        std::make_unique<Progress>(std::cout, ProgressOptions{.total_steps = steps, .columns = terminal_columns()});
  });
  return records;
}

}  // namespace

int train_run(Job& job, const TrainArguments& arguments) {
  const auto start = RunClock::Clock::now() - std::chrono::duration_cast<RunClock::Clock::duration>(process_age());
  MemoryTracker tracker;
  TrackerScope booked(tracker);
  Plan plan;
  RunModel run;
  all_or_none(job.control(), [&] {
    const TargetMachine& target = arguments.target;
    plan = make_plan(arguments, target.ranks > 0 ? target.ranks : job.size());
    plan.device = target.named() ? device_of(target, plan.config) : device_of(plan.config, job);
    run = open_model(plan, arguments);
    if (run.weights && !arguments.dry_run && job.rank() == 0) run.weights->check_values();
    if (arguments.preview.examples > 0 && job.rank() == 0)
      print_preview(plan.config, plan.model, plan.tokenizer, arguments.preview);
  });
  if (job.size() > 1) {
    std::vector<StartFact> facts;
    all_or_none(job.control(), [&] { facts = start_facts(plan.config, words_of(arguments)); });
    check_same_start(facts, job.control());
  }
  if (arguments.preview.examples > 0) return 0;
  const std::string& output = plan.config.job.output_dir;
  const auto calls = std::make_shared<FileCalls>();
  std::optional<RunLock> lock;  // rank 0's, from before the first look at the directory to the end
  if (!arguments.dry_run)
    all_or_none(job.control(), [&] {
      if (job.rank() != 0) return;
      lock.emplace(output, *calls);
      const std::vector<ReadPath> reads = reads_of(plan, arguments);
      check_output_dir(output, plan.former, reads, *calls);
      const std::string& dump = plan.config.metrics.dump_first_step;
      if (!dump.empty()) check_tensor_file(plan.config.where("metrics.dump_first_step"), dump, reads);
    });
  set_threads(job, plan.device);
  const auto asked = [&] {
    return EstimateRequest{plan.config, plan.batch, run.model, plan.device, plan.former, arguments.target};
  };
  if (arguments.dry_run) {
    if (job.rank() == 0) tell_what_is_missing(plan, arguments);
    if (job.rank() == 0) tell_doubts(plan, run);
    print_estimate(job, asked(), arguments.print_config);
    return 0;
  }
  const MemoryEstimate estimate = require_memory(job, asked());
  job.configure(mpi_options_of(plan.config));
  Communicator& communicator = job.communicator();
  check_same_device_type(plan.device, communicator);
  const c10::OptionalDeviceGuard device_guard(plan.device);
  std::string device_line;
  if (plan.device.is_cuda())
    device_line = prepare_device(plan.device.index(), precision_of(plan.config, plan.batch).compute,
                                 plan.config.job.deterministic || plan.config.job.over_ranks());
  if (plan.config.job.over_ranks()) choose_deterministic_products();
  CheckpointFolders folders(*calls, checkpoints_root(plan.config));
  RunDescription description;  // rank 0's
  on_first(communicator, [&] { description = describe_run(job, plan, *calls); });
  std::optional<std::int64_t> done;  // steps of the run that goes on
  if (arguments.resume) {
    bring_home_spare_states(plan.config, description, folders, *calls, job.control());
    done = check_resume({plan.config, description, arguments.accepted_changes}, folders, *calls, communicator);
  }
  TrainingData data = open_training_data(plan.config, plan.batch, plan.model, plan.tokenizer, communicator,
                                         job.node_cores(), plan.device);
  const std::int64_t steps = steps_of(plan.config, data);
  if (done) check_length(plan, *done, steps);
  // Once more: the steps are known, and texts are cached.
  all_or_none(job.control(), [&] { require_disk(job, asked(), estimate.plan, steps); });

  const std::string matmul = choose_fast_matmul();
  if (job.rank() == 0) {
    std::cout << estimate.table << std::flush;  // nothing of the user's is refused below it
    if (plan.device.is_cpu() && plan.config.training.precision == "fp32") log_info(matmul);
    if (!device_line.empty()) log_info(device_line);
    describe(job, plan, run.model, data.training->order(), steps);
    if (run.lora) log_info(trainable_line(run.model));
    tell_doubts(plan, run);
  }
  StopSignal stop(/*speaks=*/job.rank() == 0);
  const std::unique_ptr<Communicator> on_device = make_device_communicator(
      communicator, plan.device, {mpi_options_of(plan.config).deadline, int(plan.config.comm.ranks_per_gpu)});
  EngineOptions engine_options = engine_options_of(plan.config, plan.batch);
  engine_options.device = plan.device;
  all_or_none(job.control(), [&] { engine_options.offload = offload_policy_of(plan.config, job.rank(), plan.device); });
  engine_options.overlap = on_device != nullptr && job.size() > 1;
  engine_options.keep_inputs = estimate.keeps_inputs;
  engine_options.fuse_accumulation = plan.device.is_cuda() && fuses_accumulation_on_gpus(plan.config);
  const ComputeStream compute(plan.device);
  Mesh mesh(on_device ? *on_device : communicator, plan.batch.mesh, &communicator);
  Engine engine(chain_of(run.model), mesh, engine_options);
  for (const std::string& line : engine.optimizers().describe()) log_info(line);
  all_or_none(job.control(), [&] { engine.load(*run.weights, /*frozen_only=*/done.has_value()); });
  RunPosition position;
  if (done) position = resume_states(engine, folders, *calls, job.control());
  check_sharing(job, plan.config.checkpoint, output, *calls);
  // What a former run left goes now and not before: all that can keep this one from its first step has been tried.
  Records records = open_records(job, plan, arguments, description.id, position, steps, calls);
  return past_refusal([&] {
    check_owed_validation(position, records.metrics.get(), communicator);
    if (done && job.rank() == 0) tell_what_is_left(position, steps, data.validation != nullptr);

    Checkpoints checkpoints(plan.config.checkpoint,
                            {engine, std::move(description), folders.root(), *calls, job.control(),
                             spare_places(plan.config), estimate.copies_checkpoints});
    if (!done && arguments.checkpoint_first && plan.config.checkpoint.is_regular()) checkpoints.save(position);
    RunClock clock(clock_options_of(plan.config, checkpoint_bytes(engine)), start);
    const auto restore = [&] {
      return resume_states(engine, folders, *calls, job.control(), "there is nothing to go back to");
    };
    std::unique_ptr<StepRecorder> recorder;
    if (!arguments.record.path.empty())
      all_or_none(job.control(), [&] { recorder = std::make_unique<StepRecorder>(arguments.record, engine); });
    Trainer trainer(plan.config, steps, engine,
                    {data, records, tracker, &checkpoints, &stop, &clock, restore, recorder.get()});
    if (done) {
      trainer.resume(position);
      if (arguments.accepted_changes.empty()) checkpoints.resumed(position.steps);  // else its settings are others
    }
    if (trainer.run() == RunEnd::stopped) return static_cast<int>(ExitCode::stopped);
    stop.training_is_over();
    const std::string saved = save_result(engine, run, plan.config, checkpoints, trainer.position());
    if (records.progress) records.progress->close(peak_resident_bytes());
    if (job.rank() == 0) log_info("the ", run.lora ? "adapter" : "model", " is in ", saved);
    if (records.metrics) tell_of_losses(plan, records.metrics->waiting());
    if (checkpoints.failed() && job.rank() == 0)
      log_warning("the run is finished, but its last checkpoint could not be written");
    return 0;
  });
}

}  // namespace zero

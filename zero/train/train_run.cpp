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
#include "zero/config/offload_policy.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/config/source_files.h"
#include "zero/core/chain.h"
#include "zero/estimate/disk_room.h"
#include "zero/estimate/memory_estimate.h"
#include "zero/estimate/meta_rank.h"
#include "zero/output/output_dir.h"
#include "zero/output/run_lock.h"
#include "zero/output/shared_directory.h"
#include "zero/train/checkpoints.h"
#include "zero/train/result/save_result.h"
#include "zero/train/resume.h"
#include "zero/train/resume_settings.h"
#include "zero/train/run_data.h"
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
                                    {arguments.dry_run, "--dry-run"},
                                    {arguments.preview.examples > 0, "--preview"}})
    if (given) words.emplace_back(word);
  return words;
}

Plan make_plan(const TrainArguments& arguments, int ranks) {
  check_accepted(arguments.accepted_changes);
  Plan plan;
  plan.config = load_config(arguments.config, arguments.overrides);
  const bool here = !arguments.target.named();  // elsewhere other files may be there
  plan.former = arguments.resume      ? FormerRun::resumed
                : arguments.overwrite ? FormerRun::overwritten
                                      : FormerRun::refused;
  Mistakes mistakes;
  mistakes.allow([&] { validate_for(plan.config, ranks); });
  if (here) mistakes.allow([&] { check_files(plan.config); });
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
  validate_for_model(plan.config, plan.model);
  if (here) plan.tokenizer = tokenizer_of(plan.config, plan.model);
  if (here) check_result(plan.config, plan.model);
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

/// The first line of the run's config.toml.
std::string written_by(const Job& job, const TrainArguments& arguments) {
  return text("# zero_train ", arguments.version, ", ", counted(job.size(), "rank"), "\n");
}

void check_room(const Job& job, const Plan& plan, const Model& model, const MemoryPlan& memory,
                std::optional<std::int64_t> steps) {
  if (job.rank() != 0) return;  // whose node has the output directory
  require_room(plan.config, disk_need(plan.config, model, memory, steps), output_room(plan.config, plan.former),
               offloaded_beside(plan.config, memory, job.local_size()));
}

/// Of checkpoints that were to be asynchronous.
std::string why_not_copied(const Config& config) {
  return copies_checkpoints(config) ? "there is no memory for a copy of the states"
                                    : "states lie on disk ([offload]), for want of memory that a copy would take";
}

bool on_all(Communicator& ranks, bool mine) {
  const std::vector<std::int64_t> all = all_gather_number(ranks, mine);
  return std::find(all.begin(), all.end(), 0) == all.end();
}

/// Rank 0 prints what the run will take of its node, or of the machine that is asked about; too little memory ends the
/// run here. Whether checkpoints are copied and what is kept for backward is the same on all ranks.
MemoryEstimate tell_estimate(Job& job, const Plan& plan, const Model& model, const TrainArguments& arguments) {
  MemoryEstimate estimate;
  all_or_none(job.control(), [&] {
    const bool elsewhere = arguments.target.named();
    const NodeBudget budget = elsewhere ? budget_of(arguments.target, plan.device)
                                        : node_budget(plan.config, plan.former, job.local_size(), plan.device);
    estimate = estimate_memory(plan.config, plan.batch, model, budget);
    if (job.rank() == 0) {
      std::cout << estimate.table;
      if (arguments.dry_run) {
        std::cout << estimate.stages << plan.batch.describe() << '\n';
        MetaRank rank(chain_of(model), engine_options_of(plan.config, plan.batch),
                      memory_work_of(plan.config, plan.batch));
        for (const std::string& line : rank.engine().optimizers().describe()) std::cout << line << '\n';
      }
      if (arguments.print_config) std::cout << '\n' << resolved_toml(plan.config);
      std::cout << std::flush;
    }
    require_fit(plan.config, estimate, budget);
    if (!arguments.dry_run) check_room(job, plan, model, estimate.plan, plan.config.training.steps);
  });
  estimate.copies_checkpoints = on_all(job.control(), estimate.copies_checkpoints);
  estimate.keeps_inputs = on_all(job.control(), estimate.keeps_inputs);
  if (job.rank() == 0 && plan.device.is_cuda() && !arguments.dry_run)
    log_info("what norms and activation functions give is ", estimate.keeps_inputs ? "kept for" : "computed again in",
             " the backward pass (activation_checkpoint.keep)");
  if (job.rank() == 0 && plan.config.checkpoint.asynchronous && plan.config.checkpoint.is_regular() &&
      !estimate.copies_checkpoints)
    log_warning(plan.config.where("checkpoint.asynchronous"), ": ", why_not_copied(plan.config), ", so ",
                Checkpoints::training_waits);
  return estimate;
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
RunDescription describe_run(const Job& job, const Plan& plan) {
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

Records open_records(Job& job, const Plan& plan, const TrainArguments& arguments, const RunPosition& position,
                     std::int64_t steps, const std::shared_ptr<FileCalls>& calls) {
  const std::string& output = plan.config.job.output_dir;
  Records records;
  all_or_none(job.control(), [&] {
    if (job.rank() != 0) return;
    const std::string configuration = written_by(job, arguments) + resolved_toml(plan.config);
    records.metrics = open_metrics({output, plan.former, reads_of(plan, arguments), configuration}, position, calls);
    records.progress =
        std::make_unique<Progress>(std::cout, ProgressOptions{.total_steps = steps, .columns = terminal_columns()});
  });
  if (job.nodes() == 1) return records;
  if (plan.config.checkpoint.is_regular())
    require_shared(output, job.control(), *calls);
  else if (const auto why = why_not_shared(output, job.control(), *calls); why && job.rank() == 0)
    log_warning(
        "job.output_dir = \"", output, "\" ", *why,
        ": the run needs no checkpoints ([checkpoint] interval = 0), but where a signal or job.time_limit stops it, "
        "what it trained is lost: name a directory on a file system that all nodes share");
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
    const bool weights_lie_here = !plan.config.model.path || holds_weights(*plan.config.model.path);
    run =
        make_run_model(plan.config, plan.model, arguments.dry_run ? weights_lie_here : arguments.preview.examples == 0);
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
      lock.emplace(output);
      const std::vector<ReadPath> reads = reads_of(plan, arguments);
      check_output_dir(output, plan.former, reads, *calls);
      const std::string& dump = plan.config.metrics.dump_first_step;
      if (!dump.empty()) check_tensor_file(plan.config.where("metrics.dump_first_step"), dump, reads);
    });
  set_threads(job, plan.device);
  const MemoryEstimate estimate = tell_estimate(job, plan, run.model, arguments);
  if (arguments.dry_run) return 0;
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
  on_first(communicator, [&] { description = describe_run(job, plan); });
  std::optional<std::int64_t> done;  // steps of the run that goes on
  if (arguments.resume)
    done = check_resume({plan.config, description, arguments.accepted_changes}, folders, *calls, communicator);
  TrainingData data = open_training_data(plan.config, plan.batch, plan.model, plan.tokenizer, communicator,
                                         job.node_cores(), plan.device);
  const std::int64_t steps = steps_of(plan.config, data);
  if (done) check_length(plan, *done, steps);
  all_or_none(job.control(), [&] {
    check_room(job, plan, run.model, estimate.plan, steps);
  });  // once more: the steps are known, and texts are cached

  const std::string matmul = choose_fast_matmul();
  if (job.rank() == 0) {
    if (plan.device.is_cpu() && plan.config.training.precision == "fp32") log_info(matmul);
    if (!device_line.empty()) log_info(device_line);
    describe(job, plan, run.model, data.training->order(), steps);
    if (run.lora) log_info(trainable_line(run.model));
    for (const std::string& doubt : doubts_about(plan.config, run)) log_warning(doubt);
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
  // What a former run left goes now and not before: all that can keep this one from its first step has been tried.
  Records records = open_records(job, plan, arguments, position, steps, calls);
  check_owed_validation(position, records.metrics.get(), communicator);
  if (done && job.rank() == 0) tell_what_is_left(position, steps, data.validation != nullptr);

  Checkpoints checkpoints(plan.config.checkpoint,
                          {engine, std::move(description), folders.root(), *calls, job.control(),
                           spare_places(plan.config), estimate.copies_checkpoints});
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
  if (checkpoints.failed() && job.rank() == 0)
    log_warning("the run is finished, but its last checkpoint could not be written");
  return 0;
}

}  // namespace zero

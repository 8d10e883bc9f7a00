#include "zero/train/train_run.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <iostream>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/past_refusal.h"
#include "base/log.h"
#include "base/process/process_facts.h"
#include "comm/agreement/agreement.h"
#include "comm/stream.h"
#include "comm/world/device_backends.h"
#include "comm/world/device_choice.h"
#include "models/nn/matmul_setting.h"
#include "models/ops/cuda/device_setting.h"
#include "models/text/tokenizer.h"
#include "offload/memory/process_memory.h"
#include "zero/checkpoint/resume_states.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/config/data_files.h"
#include "zero/config/offload_policy.h"
#include "zero/config/setup.h"
#include "zero/core/chain.h"
#include "zero/output/output_dir.h"
#include "zero/output/run_lock.h"
#include "zero/output/shared_directory.h"
#include "zero/train/checkpoints.h"
#include "zero/train/observers/trackio_rows.h"
#include "zero/train/reference.h"
#include "zero/train/result/save_result.h"
#include "zero/train/resume.h"
#include "zero/train/run_data.h"
#include "zero/train/run_description.h"
#include "zero/train/run_estimate.h"
#include "zero/train/run_length.h"
#include "zero/train/run_machine.h"
#include "zero/train/run_plan.h"
#include "zero/train/spare_states.h"
#include "zero/train/start_agreement.h"
#include "zero/train/stop_signal.h"
#include "zero/train/training.h"

namespace zero {
namespace {

/// Opens the run's plan and model, which are the same on all ranks. Collective.
void open_plan(Job& job, const TrainArguments& arguments, RunPlan& plan, RunModel& run) {
  all_or_none(job.control(), [&] {
    const TargetMachine& target = arguments.target;
    plan = make_plan(arguments, target.ranks > 0 ? target.ranks : job.size(), [&](const Config& config) {
      return target.named() ? device_of(target, config) : device_of(config, job, target.ranks_here(job.local_size()));
    });
    if (job.rank() == 0 && !target.named()) check_trackio(plan.config, plan.former);
    run = open_model(plan, arguments, job.rank() % plan.batch.mesh.ranks());
    if (run.weights && !arguments.dry_run && job.rank() == 0) run.weights->check_values();
    if (arguments.preview.examples > 0 && job.rank() == 0)
      print_preview(plan.config, plan.model, plan.tokenizer, arguments.preview);
  });
  if (job.size() > 1) {
    std::vector<StartFact> facts;
    all_or_none(job.control(), [&] { facts = start_facts(plan.config, words_of(arguments)); });
    check_same_start(facts, job.control());
  }
}

/// Locks the output directory on rank 0, before it is first inspected. Collective.
std::unique_ptr<RunLock> lock_output(Job& job, const TrainArguments& arguments, const RunPlan& plan, FileCalls& calls) {
  std::unique_ptr<RunLock> lock;
  all_or_none(job.control(), [&] {
    if (job.rank() != 0) return;
    const std::string& output = plan.config.job.output_dir;
    lock = std::make_unique<RunLock>(output, calls);
    const std::vector<ReadPath> reads = reads_of(plan, arguments);
    check_output_dir(output, plan.former, reads, calls);
    const std::string& dump = plan.config.metrics.dump_first_step;
    if (!dump.empty()) check_tensor_file(plan.config.where("metrics.dump_first_step"), dump, reads);
  });
  return lock;
}

/// Chooses the arithmetic of matrix products, on which their workspace depends. Its trial is not booked as memory of
/// the run. Returns a log line.
std::string choose_products(const Config& config) {
  MemoryTracker trial;
  const TrackerScope not_booked(trial);
  return choose_matmul(matmul_precision_of(config.training.matmul_precision));
}

/// Sets up this rank's device. Returns a log line about it; empty: none.
std::string prepare(const RunPlan& plan) {
  std::string line;
  if (plan.device.is_cuda()) {
    line = prepare_device(plan.device.index(), precision_of(plan.config, plan.batch).compute,
                          plan.config.job.deterministic || plan.config.job.over_ranks());
    choose_products(plan.config);  // the device's setting was IEEE
  }
  if (plan.config.job.over_ranks()) choose_deterministic_products();
  return line;
}

/// Throws InputError if the run has fewer steps than its checkpoint has done.
void check_length(const RunPlan& plan, std::int64_t done, std::int64_t steps) {
  if (done <= steps) return;
  throw InputError(text(plan.config.where(plan.config.training.steps ? "training.steps" : "training.epochs"),
                        ": the run is to end after ", counted(steps, "step"), ", and its checkpoint is of step ", done,
                        ": name more"));
}

/// Checks, on several nodes, that every rank sees the directory, which rank 0's lock has created. Collective.
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

/// A folder with config.json alone has neither weights nor, perhaps, a tokenizer.
void leave_out_what_is_missing(ResumeRequest& request, const Config& config) {
  if (config.lora) request.unknown.emplace_back("model.path");
  const std::string tokenizer = tokenizer_source_of(config).tokenizer;
  if (!tokenizer.empty() && Tokenizer::lies_at(tokenizer)) return;
  request.unknown.emplace_back("data.tokenizer");
  request.unknown.emplace_back("data.chat_template");
}

/// Prints from which checkpoint a run would go on, and returns its step. Throws InputError for what the run would
/// refuse before it reads states.
std::optional<std::int64_t> print_resumption(const Job& job, const RunPlan& plan, const TrainArguments& arguments,
                                             FileCalls& calls) {
  const std::string& output = plan.config.job.output_dir;
  check_output_dir(output, plan.former, reads_of(plan, arguments), calls);
  if (is_locked(output, calls)) log_warning(output, " is in use by another run, whose checkpoints may change");
  ResumeRequest request{plan.config, describe_run(job, plan, calls), arguments.accepted_changes};
  const bool has_ranks = job.size() > 1 || arguments.target.ranks > 0;
  request.now.ranks = has_ranks ? plan.batch.mesh.ranks() : 0;
  if (request.now.ranks != job.size()) request.now.threads = 0;  // of ranks that are not started
  if (plan.lacks_weights(arguments)) leave_out_what_is_missing(request, plan.config);
  const CheckpointFolders home(calls, checkpoints_root(plan.config));
  NewestCheckpoint newest = newest_checkpoint(home, calls);
  const std::string spare = spare_folder_after(newest.step(), plan.config, request.now, calls);
  if (!spare.empty()) newest.take(newest_checkpoint(CheckpointFolders(calls, spare), calls));
  const Resumption found = find_resumption(request, newest, spare.empty() ? home.root() : spare, calls);
  for (const NewestCheckpoint::Damage& damage : newest.damages)
    log_warning("a newer checkpoint is passed over: ", damage.what);
  if (!found.step) {
    std::cout << "resumption: there is no checkpoint yet: the run begins at step 0\n";
    return std::nullopt;
  }
  std::string missing;
  for (const std::string& key : request.unknown) missing += (missing.empty() ? " (" : ", ") + key;
  if (!missing.empty()) missing += ")";
  std::cout << "resumption: the settings that a run keeps are those of the checkpoint of step " << *found.step
            << (found.differs ? ", but for the accepted changes" : "")
            << (request.unknown.empty() ? "" : "; what is not here is not compared") << missing
            << (spare.empty() ? "" : text("; the run moves it from ", spare, " to ", home.root())) << '\n';
  return found.step;
}

/// Prints the rows and steps of the run, if they can be counted. Throws InputError for what the run would refuse.
/// `done`: the steps that a resumed run has done. Returns the steps of the run.
std::optional<std::int64_t> print_length(const RunPlan& plan, std::optional<std::int64_t> done) {
  start_log(0, 1, LogLevel::warning);  // counting tokenises into a folder that does not stay
  const std::optional<RunLength> length = counted_length(plan.config, plan.model, plan.tokenizer);
  if (length) std::cout << "data: " << length->describe(plan.config) << '\n';
  const std::optional<std::int64_t> steps = length ? std::optional(length->steps) : plan.config.training.steps;
  if (done && steps) check_length(plan, *done, *steps);
  if (done && steps == done) std::cout << "resumption: no step is left\n";
  return steps;
}

/// A dry run before --overwrite or --resume is no mistake.
void warn_of_output(const RunPlan& plan, const TrainArguments& arguments, FileCalls& calls) {
  try {
    check_output_dir(plan.config.job.output_dir, plan.former, reads_of(plan, arguments), calls);
  } catch (const UnreadableError&) {
    throw;
  } catch (const InputError& error) {
    log_warning(error.what());
  }
}

/// Prints all that a dry run tells, from rank 0. Collective.
void print_plan(Job& job, const RunPlan& plan, RunModel& run, const TrainArguments& arguments,
                const EstimateRequest& request, FileCalls& calls) {
  if (job.rank() == 0) log_what_is_missing(plan, arguments);
  if (job.rank() == 0) log_doubts(plan, run);
  const MemoryEstimate estimate = print_estimate(job, request, arguments.print_config);
  on_first(job.control(), [&] {
    std::optional<std::int64_t> done;
    if (plan.former == FormerRun::refused && !arguments.target.named()) warn_of_output(plan, arguments, calls);
    if (arguments.resume && arguments.target.named())
      std::cout << "resumption: not compared, because the estimate is for another machine\n";
    else if (arguments.resume)
      done = print_resumption(job, plan, arguments, calls);
    const std::optional<std::int64_t> steps = print_length(plan, done);
    if (!arguments.target.named()) require_disk(job, request, estimate.plan, steps);
  });
}

/// Returns the options of the run's engine. `device_ranks` null: the ranks compute where they communicate. Collective.
EngineOptions engine_options_for(Job& job, const RunPlan& plan, const MemoryEstimate& estimate,
                                 const Communicator* device_ranks) {
  EngineOptions options = engine_options_of(plan.config, plan.batch);
  options.device = plan.device;
  all_or_none(job.control(), [&] { options.offload = offload_policy_of(plan.config, job.rank(), plan.device); });
  options.overlap = device_ranks != nullptr && job.size() > 1;
  options.keep_inputs = estimate.keeps_inputs;
  options.inputs_on_host = options.inputs_on_host && !plan.device.is_cpu();
  options.fuse_accumulation = plan.device.is_cuda() && fuses_accumulation_on_gpus(plan.config);
  return options;
}

/// The run to which the reference's values belong. `plan` must outlive the result.
ReferenceOwner owner_of_reference(const Job& job, const RunPlan& plan, const RunDescription& run) {
  return {run.id, [&plan, settings = run.settings, cores = job.node_cores()] {
            return start_mark(plan.config, plan.model, settings, cores);
          }};
}

/// Prepares the output directory and opens its records on rank 0. Collective.
RunRecords open_records(Job& job, const RunPlan& plan, const TrainArguments& arguments, const std::string& id,
                        const RunPosition& position, std::int64_t steps, const std::shared_ptr<FileCalls>& calls) {
  const std::string& output = plan.config.job.output_dir;
  RunRecords records;
  all_or_none(job.control(), [&] {
    if (job.rank() != 0) return;
    const std::string configuration =
        header_of(job, plan, arguments, position.steps, steps, *calls).line() + resolved_toml(plan.config);
    records.metrics =
        open_metrics({output, plan.former, reads_of(plan, arguments), configuration, id}, position, calls);
    ProgressOptions shown{.total_steps = steps, .columns = terminal_columns()};
    shown.before.step = position.steps, shown.before.tokens = position.tokens, shown.before.seconds = position.seconds;
    records.progress = std::make_unique<Progress>(std::cout, shown);
  });
  return records;
}

}  // namespace

int train_run(Job& job, const TrainArguments& arguments) {
  const auto start = RunClock::Clock::now() - std::chrono::duration_cast<RunClock::Clock::duration>(process_age());
  MemoryTracker tracker;
  TrackerScope booked(tracker);
  RunPlan plan;
  RunModel run;
  open_plan(job, arguments, plan, run);
  if (arguments.preview.examples > 0) return 0;
  const std::string& output = plan.config.job.output_dir;
  const auto calls = std::make_shared<FileCalls>();
  std::unique_ptr<RunLock> lock;  // held to the end
  if (!arguments.dry_run) lock = lock_output(job, arguments, plan, *calls);
  set_threads(job, plan.device);
  const std::string matmul = choose_products(plan.config);
  const auto asked = [&] {
    return EstimateRequest{plan.config, plan.batch, run.own, plan.device, plan.former, arguments.target};
  };
  const bool tells_products = job.rank() == 0 && plan.device.is_cpu() && plan.config.training.precision == "fp32";
  if (arguments.dry_run) {
    if (tells_products) log_info(matmul);
    print_plan(job, plan, run, arguments, asked(), *calls);
    return 0;
  }
  const MemoryEstimate estimate = require_memory(job, asked());
  job.configure(mpi_options_of(plan.config));
  Communicator& communicator = job.communicator();
  check_same_device_type(plan.device, communicator);
  const c10::OptionalDeviceGuard device_guard(plan.device);
  const std::string device_line = prepare(plan);
  CheckpointFolders folders(*calls, checkpoints_root(plan.config));
  RunDescription description;  // rank 0's
  on_first(communicator, [&] { description = describe_run(job, plan, *calls); });
  std::optional<std::int64_t> done;  // steps done, if the run is resumed
  if (arguments.resume) {
    bring_home_spare_states(plan.config, description, folders, *calls, job.control());
    done = check_resume({plan.config, description, arguments.accepted_changes}, folders, *calls, communicator);
  }
  TrainingData data = open_training_data(plan.config, plan.batch, plan.model, plan.tokenizer, communicator,
                                         job.node_cores(), plan.device);
  const std::int64_t steps = steps_of(plan.config, data);
  if (done) check_length(plan, *done, steps);
  // Checked once more, now that the steps are known and texts are cached.
  all_or_none(job.control(), [&] { require_disk(job, asked(), estimate.plan, steps); });

  if (job.rank() == 0) {
    std::cout << estimate.table << std::flush;  // no user errors are reported after it
    if (tells_products) log_info(matmul);
    if (!device_line.empty()) log_info(device_line);
    log_description(job, plan, run.model, data.training->order(), steps);
    if (run.lora) log_info(trainable_line(run.model));
    log_doubts(plan, run);
  }
  StopSignal stop(/*speaks=*/job.rank() == 0);
  const std::unique_ptr<Communicator> device_ranks = make_device_communicator(
      communicator, plan.device, {mpi_options_of(plan.config).deadline, int(plan.config.comm.ranks_per_gpu)});
  const EngineOptions options = engine_options_for(job, plan, estimate, device_ranks.get());
  const ComputeStream compute(plan.device);
  Mesh mesh(device_ranks ? *device_ranks : communicator, plan.batch.mesh, &communicator);
  Engine engine(chain_of(run.own), mesh, options);
  for (const std::string& line : engine.optimizers().describe()) log_info(line);
  if (Pipeline* pipeline = engine.pipeline()) log_info("pipeline: ", pipeline->describe(plan.batch.accumulation));
  Reference reference(data, plan.config, steps, owner_of_reference(job, plan, description));
  check_sharing(job, plan.config.checkpoint, output, *calls);
  if (arguments.resume) reference.read(job.control(), done.has_value());
  const bool has_reference = reference.is_complete();
  all_or_none(job.control(), [&] { engine.load(*run.weights, /*frozen_only=*/done && has_reference); });
  const RunClockOptions times = clock_options_of(plan.config, checkpoint_bytes(engine));
  const auto finds_reference = [&] {
    RunClock clock(times, start);
    return has_reference || past_refusal([&] { return reference.compute(engine, stop, clock); });
  };
  RunPosition position;
  RunRecords records;
  const auto open = [&] { records = open_records(job, plan, arguments, description.id, position, steps, calls); };
  // Files of a former run are removed only now, after everything that a start checks. A new run's directory is then its
  // own, and keeps what is computed of the reference.
  if (!done) open();
  if (!finds_reference()) return static_cast<int>(ExitCode::stopped);
  if (done) {
    position = resume_states(engine, folders, *calls, job.control());
    open();
  }
  return past_refusal([&] {
    check_owed_validation(position, records.metrics.get(), communicator);
    if (done && job.rank() == 0) log_what_is_left(position, steps, data.validation != nullptr);

    Checkpoints checkpoints(plan.config.checkpoint,
                            {engine, std::move(description), folders.root(), *calls, job.control(),
                             spare_places(plan.config), estimate.copies_checkpoints});
    if (!done && arguments.checkpoint_first && plan.config.checkpoint.is_regular()) checkpoints.save(position);
    RunClock clock(times, start);
    const auto restore = [&] {
      return resume_states(engine, folders, *calls, job.control(), "there is nothing to go back to");
    };
    std::optional<Training> training;
    all_or_none(job.control(), [&] {
      training.emplace(plan.config, steps, engine,
                       TrainingParts{data, records, tracker, checkpoints, clock, &stop, restore,
                                     plan.samples ? &*plan.samples : nullptr, &run, arguments.observers});
    });
    if (done) {
      training->resume(position);
      if (arguments.accepted_changes.empty()) checkpoints.resumed(position.steps);  // otherwise the settings differ
    }
    if (training->run() == RunEnd::stopped) return static_cast<int>(ExitCode::stopped);
    stop.answer_with(StopAnswer::result_follows);
    const std::string saved = save_result(engine, run, plan.config, checkpoints, training->position());
    if (records.progress) records.progress->close(peak_resident_bytes());
    if (job.rank() == 0) log_info("the ", run.lora ? "adapter" : "model", " is in ", saved);
    if (records.metrics && !plan.config.preference) log_doubt_about_losses(plan, records.metrics->waiting());
    if (checkpoints.failed() && job.rank() == 0)
      log_warning("the run is finished, but its last checkpoint could not be written");
    return 0;
  });
}

}  // namespace zero

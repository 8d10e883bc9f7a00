// zero_train: trains a model from a configuration. mpirun starts one process per rank.
#include "base/log.h"
#include "base/log_output.h"
#include "cmake/version.h"
#include "comm/world/job.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/programs/command_line.h"
#include "zero/programs/key_hint.h"
#include "zero/programs/program.h"
#include "zero/train/train_run.h"

namespace zero {
namespace {

void describe(CLI::App& app, TrainArguments& arguments, bool& allow_unused) {
  app.add_option("config", arguments.config, "the configuration, a TOML file")->required();
  app.add_option("--set", arguments.overrides, "section.key=value, over the file; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_flag("--allow-unused", allow_unused,
               "leave out tensors of the model's file that its configuration does not name: model.allow_unused=true");
  auto* overwrite = app.add_flag("--overwrite", arguments.overwrite, "replace a run that job.output_dir holds");
  auto* resume =
      app.add_flag("--resume", arguments.resume, "continue from the newest checkpoint of the run in job.output_dir")
          ->excludes(overwrite);
  app.add_option("--accept-change", arguments.accepted_changes,
                 "with --resume: a key that may have another value than the checkpoint's; may be repeated")
      ->expected(1)
      ->take_all()
      ->needs(resume);
  app.add_flag(
      "--checkpoint-first", arguments.checkpoint_first,
      "where [checkpoint] asks for regular ones, write one before the first step too: --resume can go on from then on");
  auto* dry_run = app.add_flag("--dry-run", arguments.dry_run,
                               "say whether the run fits and what it would take at every stage, and stop");
  app.add_flag("--print-config", arguments.print_config, "with --dry-run: every key with its value, too")
      ->needs(dry_run);
  app.add_option(
         "--ranks", arguments.target.ranks,
         "with --dry-run: predict for this number of ranks, without starting them; on this machine, or that of --memory")
      ->check(CLI::Range(1, 1000000))
      ->needs(dry_run);
  app.add_option("--ranks-per-node", arguments.target.ranks_per_node, "so many of them on a node; needs --memory")
      ->check(CLI::Range(1, 1024))
      ->needs(dry_run);
  app.add_option("--memory", arguments.target.memory,
                 "of one GPU there, or for one rank on CPUs: a number with its unit, as in 80GiB")
      ->needs(dry_run);
  app.add_option("--device", arguments.target.device, "cpu or cuda there; default: training.device; needs --memory")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->needs(dry_run);
  app.add_option("--preview", arguments.preview.examples, "print so many examples as training will see them, and stop")
      ->check(CLI::Range(1, 1000000000));
  app.add_flag("--json", arguments.preview.json, "with --preview: one JSON object per example");
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::CpuAllocator allocator;
  allocator.install();
  zero::TrainArguments arguments;
  arguments.version = zero::version();
  CLI::App app("Trains a language model with ZeRO sharding over the ranks that mpirun starts.", "zero_train");
  bool allow_unused = false;
  zero::describe(app, arguments, allow_unused);
  // Parse before the world starts: help and version need no MPI.
  if (const auto code = zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_train"), zero::settable_keys()))
    return *code;
  if (allow_unused) arguments.overrides.emplace_back("model.allow_unused=true");
  return zero::Job::run([&](zero::Job& job) {
    zero::start_log(job.rank(), job.size());
    // A training run's log is its result, so the log goes to standard output with the table and the steps. Other modes
    // print their result there. A run continues even if nobody reads its log.
    const bool trains = !arguments.dry_run && arguments.preview.examples == 0;
    if (job.rank() == 0 && trains) zero::log_to_standard_output();
    const int code = zero::train_run(job, arguments);
    if (job.rank() == 0 && !trains) zero::require_written_output();
    return code;
  });
}

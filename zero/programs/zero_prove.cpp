// zero_prove: runs a configuration for a few steps in many layouts and reports which agree. It starts itself through
// mpirun as the training ranks.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/core_share.h"
#include "base/error.h"
#include "base/log.h"
#include "base/log_output.h"
#include "cmake/version.h"
#include "comm/world/job.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/programs/command_line.h"
#include "zero/programs/key_hint.h"
#include "zero/programs/program.h"
#include "zero/prove/proof.h"
#include "zero/prove/step_recorder.h"
#include "zero/train/train_run.h"

namespace zero {
namespace {

struct Arguments {
  ProofOptions proof;
  TrainArguments train;  // for a rank
  RecordOptions record;  // for a rank; without a path this process is not a rank
  bool anew = false;
};

void describe(CLI::App& app, Arguments& arguments) {
  ProofOptions& proof = arguments.proof;
  app.add_option("config", proof.config, "the configuration, a TOML file")->required();
  app.add_option("--set", proof.overrides, "section.key=value, over the file; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--ranks", proof.limits.ranks, "ranks at most; default: 4, or as many as there are cores")
      ->check(CLI::Range(1, 64));
  app.add_option("--steps", proof.steps, "steps of each run; default: 4")->check(CLI::Range(1, 1000000));
  app.add_option("--only", proof.only, "a layout by its number or name, and what it is compared with; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_flag("--list", proof.list, "print the layouts, and stop");
  app.add_flag("--first", proof.first, "stop at the first layout that differs");
  app.add_flag("--full", proof.limits.full, "more layouts");
  app.add_option("--json", proof.json, "write the verdicts to this file, too");
  app.add_option("--scratch", proof.scratch, "where the temporary folder is made; default: TMPDIR, or /tmp");
  app.add_flag("--keep", proof.keep, "keep that folder, with the record of each run, and print its name");
  // Internal: this program passes it to its ranks.
  app.add_option("--record", arguments.record.path)->group("");
  app.add_flag("--record-checkpoint", arguments.record.checkpoint)->group("");
  app.add_flag("--record-resume", arguments.train.resume)->group("");
  app.add_flag("--record-anew", arguments.anew)->group("");
}

int train_as_rank(Arguments arguments) {
  arguments.train.config = arguments.proof.config;
  arguments.train.overrides = arguments.proof.overrides;
  arguments.record.steps = arguments.proof.steps;
  arguments.train.observers.push_back(
      [record = arguments.record](const ObservedRun& run) { return std::make_unique<StepRecorder>(record, run); });
  arguments.train.overwrite = !arguments.train.resume;
  return Job::run([&](Job& job) {
    start_log(job.rank(), job.size());
    if (job.rank() == 0) log_to_standard_output();
    const int code = train_run(job, arguments.train);
    return code == int(ExitCode::stopped) ? 0 : code;  // every recorded run ends this way; mpirun would report it
  });
}

int prove_all(Arguments& arguments) {
  return run_program([&] {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
      if (std::getenv(name) && std::string(std::getenv(name)) != "1")
        throw InputError("zero_prove starts its ranks by itself: call it without mpirun or srun");
    arguments.proof.program = std::filesystem::read_symlink("/proc/self/exe").string();
    arguments.proof.cores = std::max(1, int(own_cores().count()));
    const int code = prove(arguments.proof, std::cout);
    require_written_output();
    return code;
  });
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::CpuAllocator allocator;
  allocator.install();
  zero::Arguments arguments;
  arguments.train.version = zero::version();
  arguments.proof.limits.ranks = std::clamp(int(zero::own_cores().count()), 2, 4);
  CLI::App app(
      "Runs a configuration for a few steps in many layouts (ranks, stages, micro-batches, states on disk, resumed, "
      "...) and reports which of them agree. Exit code 1: some do not.",
      "zero_prove");
  zero::describe(app, arguments);
  if (const auto code = zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_prove"), zero::settable_keys()))
    return *code;
  return arguments.record.path.empty() ? zero::prove_all(arguments) : zero::train_as_rank(arguments);
}

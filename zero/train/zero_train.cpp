// zero_train: trains a model by its configuration. Started by mpirun, one process per rank.
#include <CLI/CLI.hpp>

#include "comm/error.h"
#include "comm/log.h"
#include "comm/world.h"
#include "offload/cpu_allocator.h"
#include "zero/train/train_run.h"

int main(int argc, char** argv) {
  zero::CpuAllocator allocator;
  allocator.install();
  return zero::World::run([&](zero::World& world) {
    zero::start_log(world.rank(), world.size());
    zero::TrainArguments arguments;
    CLI::App app("Trains a Llama model with ZeRO sharding over the ranks that mpirun starts.", "zero_train");
    app.add_option("config", arguments.config, "the configuration, a TOML file")->required();
    app.add_option("--set", arguments.overrides, "section.key=value, over the file; may be repeated")->expected(1)->take_all();
    auto* overwrite = app.add_flag("--overwrite", arguments.overwrite, "replace a run that job.output_dir holds");
    auto* resume = app.add_flag("--resume", arguments.resume, "go on from the newest checkpoint of the run that job.output_dir holds")->excludes(overwrite);
    app.add_option("--accept-change", arguments.accepted_changes, "with --resume: a key that may have another value than the checkpoint's; may be repeated")
        ->expected(1)->take_all()->needs(resume);
    app.add_flag("--dry-run", arguments.dry_run, "print the resolved configuration, batch arithmetic and the memory verdict, and stop");
    app.add_option("--preview", arguments.preview.examples, "print so many examples as training will see them, and stop")->check(CLI::PositiveNumber);
    app.add_flag("--json", arguments.preview.json, "with --preview: one JSON object per example");
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return world.rank() == 0 ? app.exit(error) : 0;
      throw zero::InputError(std::string(error.what()) + " (zero_train --help lists the arguments)");
    }
    return zero::train_run(world, arguments);
  });
}

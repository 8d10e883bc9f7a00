// zero_config: writes a configuration from three answers (model, data, machine) and the planner's choices, and prints
// the command that runs it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/new_file.h"
#include "base/log.h"
#include "cmake/version.h"
#include "models/nn/matmul_setting.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/config/config_keys.h"
#include "zero/config/setup.h"
#include "zero/plan/commented_config.h"
#include "zero/plan/plan_table.h"
#include "zero/programs/command_line.h"
#include "zero/programs/data_fit.h"
#include "zero/programs/foreign_answers.h"
#include "zero/programs/foreign_config.h"
#include "zero/programs/key_hint.h"
#include "zero/programs/machine_probe.h"
#include "zero/programs/new_run.h"
#include "zero/programs/program.h"
#include "zero/programs/questions.h"
#include "zero/programs/start_command.h"
#include "zero/programs/usual_values.h"
#include "zero/programs/written_output.h"
#include "zero/train/run_data.h"

namespace zero {
namespace {

constexpr std::int64_t few_steps = 10;
constexpr double many_epochs = 10;

struct Arguments {
  NewRun run;
  MachineRequest machine;
  std::string machine_name;  // as answered; empty: not yet
  std::string out = "config.toml", hostfile, from, probe;
  bool slurm = false, no_measure = false;
  bool names_nodes = false;  // --nodes is given
};

void describe(CLI::App& app, Arguments& arguments) {
  NewRun& run = arguments.run;
  app.add_option("--model", run.model, "a preset (llama-15m, ...), or a model's directory");
  app.add_option("--data", run.data, "training data: .txt, .jsonl, .json or .bin; several are separated by commas");
  app.add_option("--machine", arguments.machine_name,
                 "here, h100-node, h200-node, b200-node, a100-node or mi300x-node");
  app.add_option("--nodes", arguments.machine.nodes, "nodes of that kind")->check(CLI::Range(1, 100000));
  app.add_option("--ranks-per-node,--gpus", arguments.machine.ranks_per_node, "ranks on a node; default: cores or GPUs")
      ->check(CLI::Range(1, 1024));
  app.add_option("--memory", arguments.machine.memory, "of one GPU, or for one rank on CPUs, as in 80GiB");
  app.add_option("--link", arguments.machine.link, "between nodes, for each node, as in 100Gbit or 10GB");
  app.add_option("--hostfile", arguments.hostfile, "print the command for the nodes of this file");
  app.add_flag("--slurm", arguments.slurm, "print the command for Slurm")->excludes("--hostfile");
  app.add_option("--from", arguments.from, "a configuration of DeepSpeed (JSON) or axolotl (YAML) to translate");
  app.add_option("--method", run.method, "full, lora or qlora; default: full for a preset, lora for a model")
      ->check(CLI::IsMember({"full", "lora", "qlora"}));
  app.add_option("--tokenizer", run.tokenizer, "default: the model directory's");
  app.add_option("--output-dir", run.output_dir, "the run's folder; default: outputs/NAME of the configuration");
  app.add_option("--steps", run.steps, "default: 1000 for a preset, two epochs for a model")
      ->check(CLI::Range(1, 1000000000));
  app.add_option("--seq-len", run.seq_len, "tokens in a row")->check(CLI::Range(1, 100000000));
  app.add_option("--global-batch", run.global_batch, "rows in a step")->check(CLI::Range(1, 100000000));
  app.add_option("--set", run.overrides, "section.key=value, over all other answers; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--out", arguments.out, "the configuration; an existing file is not replaced")->capture_default_str();
  app.add_flag("--no-measure", arguments.no_measure, "measure nothing on this machine");
  add_probe_option(app, arguments.probe);
}

void ask_user(Arguments& arguments) {
  NewRun& run = arguments.run;
  std::string presets;
  for (const std::string& name : preset_names()) presets += (presets.empty() ? "" : ", ") + name;
  ask({{"--model", "Model: a preset (" + presets + ") or a model's directory", "", &run.model, check_model},
       {"--data", "Data: .txt, .jsonl, .json or .bin files, separated by commas", "", &run.data, check_data},
       {"--machine", "Machine: here, h100-node, h200-node, b200-node, a100-node or mi300x-node", "here",
        &arguments.machine_name, check_machine},
       {"--tokenizer", "Tokenizer: a tokenizer.json, a tokenizer.model or a folder with one", "", &run.tokenizer,
        check_tokenizer, [&] { return needs_tokenizer(run); }, "for a preset and texts"}},
      isatty(STDIN_FILENO) == 1, std::cin, std::cout);
  arguments.machine.name = arguments.machine_name;
}

/// Doubts about the length of a run.
std::vector<std::string> notes_of(const RunLength& length) {
  std::vector<std::string> notes;
  if (length.steps < few_steps)
    notes.push_back(text(counted(length.steps, "step"), " change", length.steps == 1 ? "s" : "",
                         " a model little: give more data or epochs, or fewer rows by --global-batch"));
  if (length.epochs >= many_epochs)
    notes.push_back(text("each row is seen ", std::llround(length.epochs),
                         " times, which a model may learn by heart: --steps or --set training.epochs names less"));
  return notes;
}

/// Fits the configuration to its data. Throws InputError for data that zero_train would refuse.
void fit(const Arguments& arguments, const ForeignConfig& foreign, Config& config, const ModelConfig& model) {
  const NewRun& run = arguments.run;
  const std::optional<Tokenizer> tokenizer = tokenizer_of(config, model);
  check_first_example(config, model, tokenizer);
  const std::int64_t rows_of_rank = config.is_given("training.local_batch_size") ? config.training.local_batch_size : 1;
  const FitOptions options{
      .unit = ranks_of(arguments.machine) * rows_of_rank,
      .fits_seq_len = run.seq_len == 0 && !config.overridden.contains("training.seq_len"),
      .fits_batch = run.global_batch == 0 && !config.overridden.contains("training.global_batch_size")};
  const std::int64_t wanted = config.training.seq_len;
  start_log(0, 1, LogLevel::warning);  // counting tokenises into a folder that does not stay
  const std::optional<RunLength> length = fit_to_data(config, model, tokenizer, options);
  if (config.training.seq_len != wanted)
    std::cout << "the data have no row of " << wanted << " tokens; training.seq_len is " << config.training.seq_len
              << (config.row_tokens() > config.training.seq_len ? ", for each of the two answers of a row\n" : "\n");
  take_length(foreign, length, config, std::cout);
  if (!length) return;
  const std::string words = length->describe(config);
  std::cout << "data: " << words << '\n';
  for (const std::string& note : notes_of(*length)) std::cout << "note: " << note << '\n';
  validate_for_steps(config, length->steps, words);
}

void write(const Arguments& arguments, const PlannedLayout& layout, const PlanMachine& machine,
           const std::string& command) {
  const std::vector<std::string> head{"Written by zero_config for " + machine.describe() + ".",
                                      text("Planned: ", layout.describe(), ", ", three_digits(layout.time.seconds()),
                                           " s a step, bound by ", layout.time.bound(), "."),
                                      "Start: " + command, "Every key: docs/configuration.md."};
  const std::string file = commented_toml(layout.config, keys_to_show(layout.config), head);
  parse_config(file, arguments.out);  // what is written can be read
  NewFile out(arguments.out);
  out.append(file.data(), std::int64_t(file.size()));
  out.publish();
}

int configure(Arguments& arguments) {
  choose_matmul();
  if (is_there(arguments.out)) throw InputError("--out " + arguments.out + ": exists; name another file");
  require_folder_for("--out", arguments.out);
  if (!arguments.hostfile.empty())
    arguments.machine.nodes =
        count_nodes(arguments.hostfile, arguments.names_nodes ? std::optional(arguments.machine.nodes) : std::nullopt);
  NewRun& run = arguments.run;
  ForeignConfig foreign;
  if (!arguments.from.empty()) {
    std::vector<std::string> given = run.overrides;
    if (run.steps > 0) given.push_back(text("training.steps=", run.steps));
    foreign = read_foreign_config(arguments.from, given);
    take_answers(foreign, run, std::cout);
  }
  ask_user(arguments);
  if (!arguments.from.empty()) take_settings(foreign, run, arguments.machine, std::cout);
  if (run.output_dir.empty()) run.output_dir = "outputs/" + std::filesystem::path(arguments.out).stem().string();
  Config config = config_of(run, arguments.machine);
  const ModelConfig model = model_config_of(config);
  if (!config.model.fields.empty()) std::cout << "the preset with " << model_fields_toml(config.model);
  fit(arguments, foreign, config, model);
  tell_open_keys(foreign, config, std::cout);
  name_program(arguments.machine, version(), !arguments.no_measure);
  PlanMachine machine = make_machine(arguments.machine, config);
  LayoutSearch search(config, model, machine);
  SearchOptions options;
  options.best = 3;
  options.any_batch = !config.is_given("training.local_batch_size");
  const SearchResult result = search.find(options);
  if (machine.timings)
    if (const std::string why = machine.timings->save(); !why.empty())
      log_warning("the measured numbers are not kept: ", why);
  if (result.best.empty())
    throw InputError("no layout fits " + machine.describe() +
                     ": use more nodes, --seq-len, --method qlora or a smaller model");
  std::cout << '\n' << machine.describe() << '\n' << plan_table(result, machine) << '\n';
  for (const std::string& note : machine.notes) std::cout << "note: " << note << '\n';
  const std::string command =
      start_command(arguments.out, machine, {arguments.machine.program, arguments.hostfile, arguments.slurm});
  write(arguments, result.best[0], machine, command);
  std::cout << "wrote " << arguments.out << " with the first layout: " << describe_values(result.best[0].config)
            << "\nstart it:\n  " << command << '\n';
  if (machine.is_here())
    std::cout << "or look at it first:\n  " << dry_run_command(arguments.out, machine, arguments.machine.program)
              << '\n';
  require_written_output();
  return 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::CpuAllocator allocator;
  allocator.install();
  zero::Arguments arguments;
  CLI::App app(
      "Writes a configuration for a model, data and a machine. Asks for these three on a terminal; every answer is a "
      "flag, too. The layout is the fastest that zero_plan predicts.",
      "zero_config");
  zero::describe(app, arguments);
  if (const auto code =
          zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_config"), zero::settable_keys()))
    return *code;
  arguments.names_nodes = app.count("--nodes") > 0;
  if (!arguments.probe.empty()) return zero::probe_machine(arguments.probe);
  return zero::run_program([&] { return zero::configure(arguments); });
}

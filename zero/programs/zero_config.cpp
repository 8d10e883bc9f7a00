// zero_config: writes a configuration from three answers (model, data, machine) and the planner's choices, and prints
// the command that runs it.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/new_file.h"
#include "base/log.h"
#include "cmake/version.h"
#include "models/nn/matmul_setting.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/config/setup.h"
#include "zero/plan/commented_config.h"
#include "zero/plan/plan_table.h"
#include "zero/programs/command_line.h"
#include "zero/programs/foreign_config.h"
#include "zero/programs/foreign_values.h"
#include "zero/programs/key_hint.h"
#include "zero/programs/machine_probe.h"
#include "zero/programs/new_run.h"
#include "zero/programs/program.h"
#include "zero/programs/questions.h"
#include "zero/programs/start_command.h"
#include "zero/programs/written_output.h"
#include "zero/train/run_data.h"

namespace zero {
namespace {

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

/// Keys with the same reason share a line.
void print_dropped(const ForeignConfig& foreign) {
  std::vector<std::pair<std::string, std::string>> lines;  // reason, keys
  for (const auto& [key, why] : foreign.dropped) {
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&reason = why](const auto& line) { return line.first == reason; });
    if (same == lines.end())
      lines.emplace_back(why, key);
    else
      same->second += ", " + key;
  }
  if (!lines.empty()) std::cout << "dropped:\n";
  for (const auto& [why, keys] : lines) std::cout << "  " << keys << ": " << why << '\n';
}

/// The rows of a step, from the file's rows for each rank.
void take_batch(Arguments& arguments, const ForeignConfig& foreign) {
  NewRun& run = arguments.run;
  if (foreign.rows_of_rank == 0 || run.global_batch > 0 || run.sets("training.global_batch_size=")) return;
  const std::int64_t holders = std::max<std::int64_t>(1, ranks_of(arguments.machine) / foreign.ranks_of_row);
  run.global_batch = foreign.rows_of_rank * holders;
  std::cout << "global batch: " << foreign.rows_of_rank << " rows a rank x " << holders << " = " << run.global_batch
            << " rows\n";
}

bool is_longer_warmup(const ForeignConfig& foreign, std::int64_t steps) {
  const std::string key = "lr_scheduler.warmup_steps=";
  return steps > 0 && std::any_of(foreign.overrides.begin(), foreign.overrides.end(), [&](const std::string& setting) {
           return setting.starts_with(key) && std::atoll(setting.c_str() + key.size()) > steps;
         });
}

/// Fills answers that flags leave open, and lists what has no effect here.
ForeignConfig take_foreign(Arguments& arguments) {
  ForeignConfig foreign = read_foreign_config(arguments.from);
  NewRun& run = arguments.run;
  const auto take = [&](const std::string& name, const std::string& value, std::string& answer, const auto& check) {
    if (value.empty()) return;
    if (!answer.empty()) {
      foreign.dropped.emplace_back(name, value + ": the command line names another");
      return;
    }
    try {
      check(value);
      answer = value;
    } catch (const InputError& error) {
      foreign.dropped.emplace_back(name, error.what());
    }
  };
  take("base_model", foreign.model, run.model, check_model);
  take("datasets", foreign.data, run.data, check_data);
  if (run.output_dir.empty()) run.output_dir = foreign.output_dir;
  const auto drop = [&](bool given, std::initializer_list<const char*> keys) {
    if (!given) return;
    for (const char* key : keys) foreign::drop(foreign, key, "", "the command line gives another");
  };
  drop(run.steps > 0, {"training.steps=", "training.epochs="});
  drop(run.sets("lr_scheduler.warmup_"), {"lr_scheduler.warmup_"});  // steps and a ratio contradict each other
  drop(is_longer_warmup(foreign, run.steps), {"lr_scheduler.warmup_steps="});
  drop(run.seq_len > 0, {"training.seq_len="});
  drop(run.global_batch > 0, {"training.global_batch_size="});
  drop(run.method == "full", {"lora."});
  drop(run.method == "lora" || run.method == "qlora", {"lora.quantization="});
  std::cout << arguments.from << " is a configuration of " << foreign.tool << ": " << foreign.overrides.size()
            << " keys are taken\n";
  for (const std::string& setting : foreign.overrides) std::cout << "  " << setting << '\n';
  print_dropped(foreign);
  if (run.method.empty()) run.method = foreign.lora ? "lora" : "full";
  run.packs = foreign.packs;
  return foreign;
}

/// Puts the file's settings before those of the command line, once the data are known.
void merge(NewRun& run, ForeignConfig& foreign) {
  if (takes_preferences(run))
    for (const char* key : {"data.packing", "data.train_on"})
      std::erase_if(foreign.overrides, [&](const std::string& setting) {
        if (!setting.starts_with(std::string(key) + "=")) return false;
        std::cout << "dropped: " << setting << ": the data are for preferences, whose answers alone count\n";
        return true;
      });
  run.overrides.insert(run.overrides.begin(), foreign.overrides.begin(), foreign.overrides.end());
}

void ask_user(Arguments& arguments) {
  NewRun& run = arguments.run;
  ask({{"--model", "Model: a preset (llama-15m, llama-110m, tinyllama-1.1b) or a model's directory", "", &run.model,
        check_model},
       {"--data", "Data: .txt, .jsonl, .json or .bin files, separated by commas", "", &run.data, check_data},
       {"--machine", "Machine: here, h100-node, h200-node, b200-node, a100-node or mi300x-node", "here",
        &arguments.machine_name, check_machine}},
      isatty(STDIN_FILENO) == 1, std::cin, std::cout);
  arguments.machine.name = arguments.machine_name;
  if (needs_tokenizer(run))
    ask({{"--tokenizer", "Tokenizer: a tokenizer.json, a tokenizer.model or a folder with one", "", &run.tokenizer,
          check_tokenizer}},
        isatty(STDIN_FILENO) == 1, std::cin, std::cout);
}

/// Throws InputError for what zero_train would refuse: another tokenizer's data, or a first example of another kind.
void check_training(const Config& config, const ModelConfig& model) {
  check_first_example(config, model, tokenizer_of(config, model));
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
  choose_fast_matmul();
  if (is_there(arguments.out)) throw InputError("--out " + arguments.out + ": exists; name another file");
  require_folder_for("--out", arguments.out);
  if (!arguments.hostfile.empty())
    arguments.machine.nodes =
        count_nodes(arguments.hostfile, arguments.names_nodes ? std::optional(arguments.machine.nodes) : std::nullopt);
  ForeignConfig foreign;
  if (!arguments.from.empty()) foreign = take_foreign(arguments);
  ask_user(arguments);
  merge(arguments.run, foreign);
  take_batch(arguments, foreign);
  if (arguments.run.output_dir.empty())
    arguments.run.output_dir = "outputs/" + std::filesystem::path(arguments.out).stem().string();
  const Config config = config_of(arguments.run, arguments.machine);
  const ModelConfig model = model_config_of(config);
  check_training(config, model);
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
  std::cout << "wrote " << arguments.out << " with the first layout; start it:\n  " << command << '\n';
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
  if (const auto code = zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_config"), zero::key_hint))
    return *code;
  arguments.names_nodes = app.count("--nodes") > 0;
  if (!arguments.probe.empty()) return zero::probe_machine(arguments.probe);
  return zero::run_program([&] { return zero::configure(arguments); });
}

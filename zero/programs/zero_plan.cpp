// zero_plan: predicts time and memory of a run in every legal layout, and prints the fastest that fit.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "cmake/version.h"
#include "models/nn/matmul_setting.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/config/setup.h"
#include "zero/plan/plan_table.h"
#include "zero/programs/command_line.h"
#include "zero/programs/key_hint.h"
#include "zero/programs/machine_probe.h"
#include "zero/programs/measured_run.h"
#include "zero/programs/new_run.h"
#include "zero/programs/plan_input.h"
#include "zero/programs/program.h"
#include "zero/programs/start_command.h"
#include "zero/programs/usual_values.h"
#include "zero/programs/written_output.h"
#include "zero/train/run_length.h"

namespace zero {
namespace {

struct Arguments {
  PlanInput input;
  MachineRequest machine;
  SearchOptions search;
  std::string write, probe;
  bool largest_batch = false, json = false, no_measure = false;
};

void describe(CLI::App& app, Arguments& arguments) {
  PlanInput& input = arguments.input;
  app.add_option("model", input.model,
                 "a preset, a model's directory or config.json, a configuration (.toml), or a run's output directory, "
                 "whose measured steps are then compared with the prediction");
  app.add_option("--set", input.overrides, "section.key=value, over the file; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--data", input.data, "for a model: the training data that --write names");
  app.add_option("--tokenizer", input.tokenizer,
                 "for a preset and --data that are texts: a tokenizer's file or folder");
  app.add_option("--seq-len", input.seq_len, "for a model: tokens in a row; default: 2048, or the model's context")
      ->check(CLI::Range(1, 100000000));
  app.add_option("--global-batch", input.global_batch, "for a model: rows in a step; default: about 131,072 tokens")
      ->check(CLI::Range(1, 100000000));
  MachineRequest& machine = arguments.machine;
  app.add_option("--machine", machine.name, "here, h100-node, h200-node, b200-node, a100-node or mi300x-node")
      ->capture_default_str();
  app.add_option("--nodes", machine.nodes, "nodes of that kind")->check(CLI::Range(1, 100000));
  app.add_option("--ranks-per-node,--gpus", machine.ranks_per_node, "ranks on a node; default: its cores or GPUs")
      ->check(CLI::Range(1, 1024));
  app.add_option("--memory", machine.memory, "of one GPU, or for one rank on CPUs, as in 80GiB; default: as found");
  app.add_option("--link", machine.link, "between nodes, for each node, as in 100Gbit or 10GB");
  app.add_option("--best", arguments.search.best, "layouts to print")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_flag("--only-given", arguments.search.only_given,
               "predict the configuration's own layout, and search nothing");
  app.add_flag("--keep-batch", arguments.input.keep_batch, "keep local_batch_size, too");
  app.add_flag("--largest-batch", arguments.largest_batch, "for each layout, the largest local_batch_size that fits");
  app.add_flag("--no-measure", arguments.no_measure, "measure nothing: use numbers of earlier calls, or scale them");
  app.add_option("--write", arguments.write, "write the best layout as a configuration for zero_train");
  app.add_flag("--json", arguments.json, "one JSON object");
  add_probe_option(app, arguments.probe);
}

void print_largest(LayoutSearch& search, const SearchResult& result) {
  std::cout << "\nlargest local_batch_size that fits, with a global batch to match:\n";
  for (const PlannedLayout& layout : result.best)
    std::cout << "  " << layout.describe() << ": " << search.largest_batch(layout) << '\n';
}

void print(const SearchResult& result, const PlanMachine& machine, const Config& config) {
  std::cout << machine.describe() << '\n';
  for (const std::string& line : machine.sources()) std::cout << "  " << line << '\n';
  for (const std::string& note : machine.notes) std::cout << "  note: " << note << '\n';
  const OffloadConfig& offload = config.offload;
  if (!machine.gpu && (offload.optimizer == "cpu" || offload.parameters == "cpu"))
    std::cout << "  note: offload to \"cpu\" changes nothing on CPUs, whose states are in the host's memory already\n";
  std::cout << "\nglobal batch " << *config.training.global_batch_size << " rows of " << config.row_tokens()
            << " tokens; " << counted(result.possible, "layout") << " predicted";
  if (result.too_large > 0)
    std::cout << ", " << counted(result.too_large, "faster one") << (result.too_large == 1 ? " does" : " do")
              << " not fit";
  std::cout << ", " << result.illegal << " refused\n\n";
  if (!result.best[0].memory.fits) std::cout << "the first does NOT fit " << machine.describe() << "\n";
  if (result.given && !result.given->memory.fits)
    std::cout << "the given layout does NOT fit " << machine.describe() << "\n";
  if (!result.why_not_given.empty())
    std::cout << "the given layout is not legal here: " << result.why_not_given << "\n\n";
  std::cout << plan_table(result, machine) << "\nthe step of the first:\n" << parts_of_step(result.best[0].time);
  std::cout << "memory is that of the fullest rank; batch is rows x micro-batches of a rank; bytes are what a rank "
               "sends, reads and writes in a step, with a pipeline a rank of its busiest stage\n";
}

void report_cache(PlanMachine& machine) {
  if (!machine.timings) return;
  const std::string why = machine.timings->save();
  if (!why.empty()) log_warning("the measured numbers are not kept: ", why);
}

/// Plans the layout of a run that has been measured, on as many ranks.
void plan_as_run(Arguments& arguments, const MeasuredRun& run) {
  arguments.input.model = run.config;
  arguments.search.only_given = true;
  if (arguments.machine.ranks_per_node == 0 && run.ranks > 0)
    arguments.machine.ranks_per_node = std::max(1, run.ranks / arguments.machine.nodes);
}

/// Describes the length of the run that --write plans for one node of this machine; empty for others, whose files may
/// be elsewhere. Throws InputError for files that are not here, and for counted data that the run would refuse.
std::string length_of_written(const Arguments& arguments, Config config) {
  if (arguments.machine.name != "here" || arguments.machine.nodes > 1) return "";
  if (!arguments.input.data.empty()) check_data(arguments.input.data);
  check_files(config, FileNeed::estimate);
  if (!config.training.global_batch_size)
    config.training.global_batch_size = BatchArithmetic::of(config, int(ranks_of(arguments.machine))).global_batch_size;
  const ModelConfig model = model_config_of(config);
  start_log(0, 1, LogLevel::warning);  // counting tokenises into a folder that does not stay
  const std::optional<RunLength> length = counted_length(config, model, tokenizer_of(config, model));
  return length ? length->describe(config) : "not counted, because they are large";
}

/// The folder, or one beside it if it holds a run.
std::string free_output(const std::string& folder) {
  std::string free = folder;
  for (int number = 2; is_there(free + "/config.toml"); ++number) free = text(folder, "-", number);
  return free;
}

int plan(Arguments& arguments) {
  std::optional<MeasuredRun> run;
  if (is_run_folder(arguments.input.model)) plan_as_run(arguments, run.emplace(measured_run(arguments.input.model)));
  const Config config = config_of(arguments.input, arguments.machine);
  choose_matmul(matmul_precision_of(config.training.matmul_precision));
  name_program(arguments.machine, version(), !arguments.no_measure);
  const bool of_model = config.source != arguments.input.model;
  if (!arguments.write.empty() && of_model && arguments.input.data.empty())
    throw InputError("--write " + arguments.write + ": a model needs --data too, the files to train on");
  if (!arguments.write.empty() && is_there(arguments.write))
    throw InputError("--write " + arguments.write + ": exists; name another file, or remove that one");
  if (!arguments.write.empty()) require_folder_for("--write", arguments.write);
  const std::string length = arguments.write.empty() ? "" : length_of_written(arguments, config);
  PlanMachine machine = make_machine(arguments.machine, config);
  const ModelConfig model = model_config_of(config);
  Config planned = config;
  const bool writes_here = !arguments.write.empty() && arguments.machine.name == "here";
  if (writes_here) planned.job.output_dir = free_output(config.job.output_dir);
  if (!planned.training.global_batch_size)
    planned.training.global_batch_size = BatchArithmetic::of(config, machine.ranks()).global_batch_size;
  arguments.search.any_batch = !arguments.input.keep_batch && !arguments.search.only_given;
  arguments.search.shows_given = !of_model;
  LayoutSearch search(planned, model, machine);
  const SearchResult result = search.find(arguments.search);
  report_cache(machine);
  if (result.best.empty())
    throw InputError(
        text("no layout fits ", machine.describe(), ": use more nodes, a shorter seq_len, LoRA or a smaller model"));
  if (!arguments.write.empty() && !result.best[0].memory.fits)
    throw InputError("--write " + arguments.write + ": this layout does not fit " + machine.describe() +
                     "; leave --only-given out");
  std::function<std::int64_t(const PlannedLayout&)> largest;
  if (arguments.largest_batch) largest = [&](const PlannedLayout& layout) { return search.largest_batch(layout); };
  const std::string why_not = run ? run->why_not_compared(machine, arguments.machine.name == "here") : "";
  if (!why_not.empty()) machine.notes.push_back("not compared with the run: " + why_not);
  const bool compares = run && why_not.empty();
  if (arguments.json)
    std::cout << plan_json(result, machine, compares ? &run->figures : nullptr, largest);
  else
    print(result, machine, planned);
  if (compares && !arguments.json) std::cout << '\n' << comparison_text(*run, result.best[0]);
  if (arguments.largest_batch && !arguments.json) print_largest(search, result);
  if (!arguments.write.empty()) {
    const std::string command = start_command(arguments.write, machine, {arguments.machine.program, "", false});
    write_plan(arguments.write, result.best[0], machine, command);
    if (!arguments.json)
      std::cout << "\nwrote " << arguments.write << (arguments.search.only_given ? "" : " with the first layout")
                << (arguments.largest_batch ? " and its batch" : "") << ": " << describe_values(result.best[0].config)
                << (length.empty() ? "" : "\ndata: " + length)
                << (planned.job.output_dir == config.job.output_dir
                        ? ""
                        : "\noutput_dir = " + planned.job.output_dir + ": the configuration's own holds a run")
                << "\nstart it:\n  " << command << '\n';
  }
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
      "Predicts the time and memory of a training step in every legal layout, here or on a machine of a data sheet, and "
      "prints the fastest layouts that fit.",
      "zero_plan");
  zero::describe(app, arguments);
  if (const auto code = zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_plan"), zero::settable_keys()))
    return *code;
  if (!arguments.probe.empty()) return zero::probe_machine(arguments.probe);
  return zero::run_program([&] { return zero::plan(arguments); });
}

// zero_doctor: examines this machine and says what a run would find. It starts two ranks of itself through mpirun.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "cmake/version.h"
#include "comm/world/job.h"
#include "zero/doctor/finding.h"
#include "zero/doctor/graphics.h"
#include "zero/doctor/launcher.h"
#include "zero/doctor/processor.h"
#include "zero/doctor/storage.h"
#include "zero/programs/command_line.h"
#include "zero/programs/program.h"

namespace zero {
namespace {

struct Arguments {
  std::string folder = ".";
  bool json = false;
  bool hello = false;  // this process is one of the two ranks
};

void describe(CLI::App& app, Arguments& arguments) {
  app.add_option("--folder", arguments.folder, "where the speed of the disk is measured, in a file of 256 MiB at most")
      ->capture_default_str();
  app.add_flag("--json", arguments.json, "print one JSON object");
  app.add_flag("--hello", arguments.hello)->group("");  // internal: this program passes it to its ranks
}

std::string text_of_file(const char* path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

std::string program_and_libraries() {
  std::string words = version_text("zero_doctor");
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words;
}

void refuse_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (std::getenv(name) && std::string(std::getenv(name)) != "1")
      throw InputError("zero_doctor starts its ranks by itself: call it on each node without mpirun or srun");
}

int examine(const Arguments& arguments) {
  refuse_launcher();
  if (!is_folder(arguments.folder)) throw InputError("--folder " + arguments.folder + ": is no folder here");
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::vector<std::function<Finding()>> examinations = {
      [] { return examine_processor(text_of_file("/proc/cpuinfo")); },
      [] { return examine_cores(std::getenv("OMP_NUM_THREADS")); },
      [] { return examine_memory(); },
      examine_shared_memory,
      examine_io_uring,
      [&] { return examine_disk(arguments.folder); },
      examine_gpus,
      examine_nccl,
      examine_mpirun,
      [&] { return examine_ranks(program, "--hello"); },
  };
  if (!arguments.json) std::cout << program_and_libraries() << std::endl;
  std::vector<Finding> findings;
  for (const auto& examination : examinations) {
    findings.push_back(examination());
    if (!arguments.json) std::cout << text_of(findings.back()) << std::flush;
  }
  if (arguments.json) std::cout << json_of(findings, program_and_libraries()) << '\n';
  require_written_output();
  return any_fault(findings) ? 1 : 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::Arguments arguments;
  CLI::App app(
      "Examines this machine: processor, memory, disk, GPUs, mpirun, and two ranks that it starts. Each line is ok, a "
      "warning, a fault or unknown, with a remedy. Exit code 1: there is a fault. Add the output to a bug report.",
      "zero_doctor");
  zero::describe(app, arguments);
  if (const auto code = zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_doctor"))) return *code;
  if (!arguments.hello) return zero::run_program([&] { return zero::examine(arguments); });
  return zero::Job::run([](zero::Job& job) {
    zero::start_log(job.rank(), job.size());
    zero::greet(job);
    return 0;
  });
}

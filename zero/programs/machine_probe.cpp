#include "zero/programs/machine_probe.h"

#include <filesystem>

#include "base/log.h"
#include "comm/world/job.h"
#include "zero/plan/collective_probe.h"

namespace zero {

void add_probe_option(CLI::App& app, std::string& file) { app.add_option("--probe", file)->group(""); }

int probe_machine(const std::string& file) {
  return Job::run([&](Job& job) {
    start_log(job.rank(), job.size());
    probe_collectives(job.communicator(), file);
    return 0;
  });
}

void name_program(MachineRequest& request, const std::string& version, bool measure) {
  request.program = std::filesystem::read_symlink("/proc/self/exe").string();
  request.version = version;
  request.measure = measure;
}

}  // namespace zero

#include "zero/programs/start_command.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "base/shell_word.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

/// With these mpirun notices a lost node in seconds (docs/clusters.md).
constexpr const char* keep_alive =
    "--mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3 ";

/// As short as a shell in the current folder allows. A bare name would be sought in PATH alone.
std::string shell_path(const fs::path& path) {
  std::string near = path.lexically_relative(fs::current_path()).string();
  if (near.empty() || near.starts_with("..")) near = path.string();
  return shell_word(near.find('/') == near.npos ? "./" + near : near);
}

bool is_on_path(const fs::path& folder) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string one; std::getline(folders, one, ':');)
    if (!one.empty() && (fs::path(one) / "").lexically_normal() == (folder / "").lexically_normal()) return true;
  return false;
}

/// The program's name for a shell, if the file is in `folder`; otherwise the bare name.
std::string program_in(const fs::path& folder, const std::string& name) {
  return is_on_path(folder) || !is_file((folder / name).string()) ? name : shell_path(folder / name);
}

/// A file of the source folder whose build/release/bin is `folder`, or of an installation; empty if there is none.
fs::path found_beside(const fs::path& folder, const std::string& in_source, const std::string& in_installation) {
  const fs::path source = folder.parent_path().parent_path().parent_path(), prefix = folder.parent_path();
  const bool is_source = is_file((source / "CMakeLists.txt").string()) && is_file((source / in_source).string());
  if (is_source) return source / in_source;
  return is_file((prefix / in_installation).string()) ? prefix / in_installation : fs::path();
}

/// The launcher gives mpirun what several nodes need (docs/clusters.md), and takes the build for the machine's GPUs.
std::string mpi_command(const std::string& config, const std::string& mpi_options, bool several_nodes,
                        const fs::path& folder) {
  const fs::path launcher = found_beside(folder, "scripts/train", "bin/zero_launch");
  if (launcher.empty())
    return std::string("mpirun --bind-to none ") + (several_nodes ? keep_alive : "") + mpi_options + " " +
           program_in(folder, "zero_train") + " " + config;
  const bool is_installed = launcher.parent_path() == folder;
  return (is_installed ? program_in(folder, launcher.filename()) : shell_path(launcher)) + " " + config + " " +
         mpi_options;
}

/// Slurm's script seeks the program in the folder of the submission, unless ZERO_TRAIN names it.
std::string program_for_slurm(const fs::path& folder, bool gpu) {
  const fs::path build = folder.parent_path().parent_path();
  const bool is_source = is_file((build.parent_path() / "CMakeLists.txt").string());
  if (is_source && build.parent_path() == fs::current_path()) return "";
  const fs::path program = (is_source && gpu ? build / "cuda" / "bin" : folder) / "zero_train";
  return "ZERO_TRAIN=" + shell_word(program.string()) + " ";
}

/// The names of the nodes of Open MPI's hostfile.
std::set<std::string> nodes_of(const std::string& hostfile) {
  std::ifstream file(hostfile);
  if (!is_file(hostfile) || !file) throw InputError("--hostfile " + hostfile + ": is no file that can be read here");
  std::set<std::string> names;
  for (std::string line, name; std::getline(file, line);)
    if (std::istringstream words(line.substr(0, line.find('#'))); words >> name) names.insert(name);
  if (names.empty()) throw InputError("--hostfile " + hostfile + ": names no node");
  return names;
}

}  // namespace

std::string start_command(const std::string& file, const PlanMachine& machine, const StartOptions& options) {
  const std::string config = shell_word(file);
  const fs::path folder = fs::path(options.program).parent_path();
  if (options.slurm) {
    const fs::path script = found_beside(folder, "examples/slurm.sbatch", "share/zero/examples/slurm.sbatch");
    return text(
        program_for_slurm(folder, machine.gpu), "sbatch -N ", machine.nodes,
        " --ntasks-per-node=", machine.ranks_per_node,
        machine.gpu ? text(" --gpus-per-node=", machine.ranks_per_node) : text(" --cpus-per-task=", machine.threads),
        " ", script.empty() ? "examples/slurm.sbatch" : shell_path(script), " ", config);
  }
  const std::string ranks = text("-np ", machine.ranks());
  if (machine.nodes == 1 && options.hostfile.empty()) return mpi_command(config, ranks, false, folder);
  const std::string hosts = options.hostfile.empty() ? "HOSTS" : shell_word(options.hostfile);
  return mpi_command(config, text("--hostfile ", hosts, " --map-by ppr:", machine.ranks_per_node, ":node ", ranks),
                     true, folder);
}

std::string dry_run_command(const std::string& file, const PlanMachine& machine, const std::string& program) {
  return program_in(fs::path(program).parent_path(), "zero_train") + " " + shell_word(file) + " --dry-run" +
         (machine.ranks() > 1 ? text(" --ranks ", machine.ranks()) : "");
}

int count_nodes(const std::string& hostfile, std::optional<int> nodes) {
  const int named = int(nodes_of(hostfile).size());
  if (nodes && *nodes > named)
    throw InputError(
        text("--hostfile ", hostfile, ": names ", named, named == 1 ? " node" : " nodes", ", and --nodes is ", *nodes));
  return nodes.value_or(named);
}

}  // namespace zero

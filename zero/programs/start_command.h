#pragma once
// The command that starts a run on a planned machine.
#include <optional>
#include <string>

#include "zero/plan/plan_machine.h"

namespace zero {

struct StartOptions {
  std::string program;   // path of the calling program, beside which zero_train lies
  std::string hostfile;  // the nodes of Open MPI; empty: a placeholder if there are several nodes
  bool slurm = false;    // an sbatch command instead
};

/// The shell command that trains by the configuration file `file`, for a shell in the current folder. It uses the
/// launcher: scripts/train in a source folder, zero_launch in an installation. Without one it is mpirun's command.
std::string start_command(const std::string& file, const PlanMachine& machine, const StartOptions& options);

/// The command that says on one process of this machine whether the configuration fits it, and what it takes.
std::string dry_run_command(const std::string& file, const PlanMachine& machine, const std::string& program);

/// Returns `nodes`, or if it is not given those that Open MPI's hostfile names. Throws InputError for a file that
/// cannot be read or names none, and for one that names fewer than `nodes`.
int count_nodes(const std::string& hostfile, std::optional<int> nodes);

}  // namespace zero

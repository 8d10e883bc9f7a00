#pragma once
// MachineProbe: how zero_plan and zero_config measure this machine. They start themselves under mpirun with --probe.
#include <CLI/CLI.hpp>
#include <string>

#include "zero/plan/plan_machine.h"

namespace zero {

/// Adds --probe, an option that users do not see.
void add_probe_option(CLI::App& app, std::string& file);

/// The program under mpirun: times collectives between its ranks, and writes them into `file`. Returns the exit code.
int probe_machine(const std::string& file);

/// Names this program and its build in a request. `measure` false: nothing is measured.
void name_program(MachineRequest& request, const std::string& version, bool measure);

}  // namespace zero

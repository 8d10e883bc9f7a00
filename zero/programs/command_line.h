#pragma once
// Parses the command lines of all programs: one style of --help, --version and errors.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "zero/programs/stray_arguments.h"

namespace zero {

/// Adds --version, wraps --help at 80 columns, and parses. Returns the exit code if help, the version or a completion
/// script (--completion SHELL alone) was requested (printed if `speaks`). Throws InputError that refers to --help if
/// parsing fails. `keys`: for programs with --set (zero/programs/key_hint.h).
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv, const std::string& version_text,
                                      bool speaks = true, const SettableKeys& keys = {});

/// Does the same for a program that has not started its ranks yet: mpirun's first rank reports a parse error, and all
/// return exit code 2.
std::optional<int> parse_or_refuse(CLI::App& app, int argc, const char* const* argv, const std::string& version_text,
                                   const SettableKeys& keys = {});

}  // namespace zero

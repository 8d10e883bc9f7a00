#pragma once
// The command lines of all programs: one style of --help, --version and refusal.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace zero {

/// Adds --version, breaks the descriptions so that no line of --help is longer than 80 columns, and parses. Gives the
/// exit code where help or version was asked for (printed if `speaks`). Throws InputError, with the hint at --help, for
/// what cannot be parsed.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv, const std::string& version_text,
                                      bool speaks = true);

/// The same for a program that has not started its ranks yet: what cannot be parsed is told by the first of those that
/// mpirun started, and gives exit code 2.
std::optional<int> parse_or_refuse(CLI::App& app, int argc, const char* const* argv, const std::string& version_text);

}  // namespace zero

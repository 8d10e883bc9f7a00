#pragma once
// Completion: completion scripts for shells, made from the options that a program declares. A script names no option
// that the program lacks.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace zero {

/// Returns a program's completion script for "bash", "zsh" or "fish". It completes options, their values if these are a
/// choice of words, the `keys` of --set, and subcommands. Other words complete to files. Throws InputError for another
/// shell.
std::string completion_of(const CLI::App& app, const std::string& shell, const std::vector<std::string>& keys = {});

/// Returns the shell of the command line "PROGRAM --completion SHELL"; nothing for any other command line.
std::optional<std::string> asked_completion(int argc, const char* const* argv);

}  // namespace zero

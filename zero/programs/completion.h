#pragma once
// Completion: scripts for shells, from the options that a program declares. They name no option that it lacks.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace zero {

/// The completion script of a program for "bash", "zsh" or "fish": its options, their values where these are words to
/// choose from, and its subcommands. Other words complete to files. Throws InputError for another shell.
std::string completion_of(const CLI::App& app, const std::string& shell);

/// The shell of the command line "PROGRAM --completion SHELL"; nothing for any other.
std::optional<std::string> asked_completion(int argc, const char* const* argv);

}  // namespace zero

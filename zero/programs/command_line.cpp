#include "zero/programs/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "zero/programs/completion.h"
#include "zero/programs/written_output.h"

namespace zero {
namespace {

constexpr std::size_t line_columns = 80, name_columns = 30;

std::string broken(const std::string& description, std::size_t columns) {
  std::istringstream words(description);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > columns) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line;
}

/// Option names such as "--set".
std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// Refuses words that belong to no option.
void refuse_strays(const CLI::App& app, const SettableKeys& keys) {
  const std::vector<std::string> strays = app.remaining();
  if (!strays.empty())
    throw InputError(stray_arguments_message(strays, names_of_options(app), keys.hint) + " (" + app.get_name() +
                     " --help lists the arguments)");
}

/// CLI11 names an option by the first of its names, and users know the one that they typed.
std::string as_typed(std::string message, const CLI::App& app, int argc, const char* const* argv) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) {
      const std::string first = "--" + option->get_lnames().front(), typed = "--" + name;
      const bool is_typed = std::any_of(argv + 1, argv + argc, [&](const char* word) {
        return word == typed || std::string(word).starts_with(typed + "=");
      });
      if (is_typed && message.starts_with(first)) message.replace(0, first.size(), typed);
    }
  return message;
}

/// The rank that mpirun or srun sets; true without them.
bool is_first_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return std::string(rank) == "0";
  return true;
}

}  // namespace

std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv, const std::string& version_text,
                                      bool speaks, const SettableKeys& keys) {
  app.set_version_flag("--version", version_text);
  app.get_formatter()->column_width(name_columns);
  app.description(broken(app.get_description(), line_columns));
  for (CLI::Option* option : app.get_options())
    option->description(broken(option->get_description(), line_columns - name_columns));
  app.footer("--completion bash, zsh or fish prints a script that completes options there.");
  if (const auto shell = asked_completion(argc, argv)) {
    if (speaks) std::cout << completion_of(app, *shell, keys.names);
    require_written_output();
    return 0;
  }
  app.allow_extras();  // reported below: CLI11 lists them in reverse
  try {
    app.parse(argc, argv);
    refuse_strays(app, keys);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      if (speaks) app.exit(error);
      require_written_output();
      return 0;
    }
    // A misspelt option explains a missing one, so report it first.
    const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
    if (code == CLI::ExitCodes::RequiredError || code == CLI::ExitCodes::RequiresError) refuse_strays(app, keys);
    throw InputError(as_typed(error.what(), app, argc, argv) + " (" + app.get_name() + " --help lists the arguments)");
  }
  return std::nullopt;
}

std::optional<int> parse_or_refuse(CLI::App& app, int argc, const char* const* argv, const std::string& version_text,
                                   const SettableKeys& keys) {
  const bool first = is_first_rank();
  try {
    return parse_command_line(app, argc, argv, version_text, first, keys);
  } catch (const Error& error) {
    if (first) log_error(error.what());
    return static_cast<int>(error.code());
  }
}

}  // namespace zero

#include "zero/programs/completion.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

struct Flag {
  std::string name;  // "--set"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> choices;
  std::vector<std::string> keys = {};  // "zero.stage=", which a value follows
};

/// The words of CLI::IsMember, which describes itself as "TYPE:{a,b}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == type.npos || end == type.npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

/// The options that --help shows: no internal ones.
std::vector<Flag> flags_of(const CLI::App& app, const std::vector<std::string>& keys) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      flags.push_back(
          {"--" + name, option->get_description(), option->get_items_expected_max() > 0, choices_of(*option)});
  }
  for (Flag& flag : flags)
    if (flag.name == "--set")
      for (const std::string& key : keys) flag.keys.push_back(key + "=");
  return flags;
}

std::vector<std::pair<std::string, std::string>> commands_of(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    commands.emplace_back(command->get_name(), command->get_description());
  return commands;
}

/// In one line, without the characters that quote in any of the shells.
std::string plain(std::string description) {
  for (char& letter : description)
    if (std::string_view("\n'\"`$\\[]:;").find(letter) != std::string_view::npos) letter = ' ';
  return description;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

std::string bash_script(const std::string& program, const std::vector<Flag>& flags, const CLI::App& app) {
  std::string values, names, commands;
  for (const Flag& flag : flags) {
    names += (names.empty() ? "" : " ") + flag.name;
    if (!flag.keys.empty())
      values += text("    ", flag.name, ") compopt -o nospace 2> /dev/null; COMPREPLY=($(compgen -W '",
                     joined(flag.keys), "' -- \"$word\")); return ;;\n");
    else if (!flag.choices.empty())
      values +=
          text("    ", flag.name, ") COMPREPLY=($(compgen -W '", joined(flag.choices), "' -- \"$word\")); return ;;\n");
    else if (flag.takes_value)
      values += text("    ", flag.name, ") return ;;\n");
  }
  for (const auto& [name, description] : commands_of(app)) commands += (commands.empty() ? "" : " ") + name;
  std::string script =
      text("_", program, "() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n");
  script += "  COMPREPLY=()\n";
  if (!values.empty()) script += "  case \"$before\" in\n" + values + "  esac\n";
  script += text("  case \"$word\" in -*) COMPREPLY=($(compgen -W '", names, "' -- \"$word\")); return ;; esac\n");
  if (!commands.empty())
    script += text("  [ \"$COMP_CWORD\" -eq 1 ] && COMPREPLY=($(compgen -W '", commands, "' -- \"$word\"))\n");
  return script + text("  return 0\n}\ncomplete -o default -F _", program, " ", program, "\n");
}

std::string zsh_script(const std::string& program, const std::vector<Flag>& flags, const CLI::App& app) {
  std::string script = text("#compdef ", program, "\n_arguments");
  for (const Flag& flag : flags) {
    script += text(" \\\n  '*", flag.name, "[", plain(flag.description), "]");
    if (!flag.keys.empty())
      script += ":value:{compadd -S \"\" -- " + joined(flag.keys) + "}";
    else if (!flag.choices.empty())
      script += ":value:(" + joined(flag.choices) + ")";
    else if (flag.takes_value)
      script += ":value:_files";
    script += "'";
  }
  std::vector<std::string> commands;
  for (const auto& [name, description] : commands_of(app)) commands.push_back(name);
  if (!commands.empty()) script += " \\\n  '1:command:(" + joined(commands) + ")'";
  return script + " \\\n  '*:file:_files'\n";
}

std::string fish_script(const std::string& program, const std::vector<Flag>& flags, const CLI::App& app) {
  std::string script;
  for (const Flag& flag : flags) {
    script += text("complete -c ", program, " -l ", flag.name.substr(2), " -d '", plain(flag.description), "'");
    if (!flag.keys.empty() || !flag.choices.empty())
      script += " -x -a '" + joined(flag.keys.empty() ? flag.choices : flag.keys) + "'";
    else if (flag.takes_value)
      script += " -r";
    script += "\n";
  }
  for (const auto& [name, description] : commands_of(app))
    script += text("complete -c ", program, " -n __fish_use_subcommand -a ", name, " -d '", plain(description), "'\n");
  return script;
}

}  // namespace

std::string completion_of(const CLI::App& app, const std::string& shell, const std::vector<std::string>& keys) {
  const std::string program = app.get_name();
  if (shell == "bash") return bash_script(program, flags_of(app, keys), app);
  if (shell == "zsh") return zsh_script(program, flags_of(app, keys), app);
  if (shell == "fish") return fish_script(program, flags_of(app, keys), app);
  throw InputError(text("--completion ", shell, ": must be bash, zsh or fish"));
}

std::optional<std::string> asked_completion(int argc, const char* const* argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--completion") return std::nullopt;
  return argv[2];
}

}  // namespace zero

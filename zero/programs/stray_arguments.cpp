#include "zero/programs/stray_arguments.h"

#include <algorithm>

#include "zero/config/config_keys.h"
#include "zero/config/foreign_keys.h"
#include "zero/config/nearest_key.h"

namespace zero {
namespace {

// The key "section.key" in a word like "--zero-stage" or "--optimizer.lr"; empty for others.
std::string key_of(std::string word) {
  std::replace(word.begin(), word.end(), '-', '_');
  for (const ConfigKey& key : config_keys())
    if (word == key.name || word == key.full_name() || word == key.section + "_" + key.name) return key.full_name();
  return "";
}

// Returns the name of a configuration key and how to set it; empty for an unknown word.
std::string key_hint(const std::string& name, const std::string& value) {
  if (const std::string key = key_of(name); !key.empty())
    return "; keys of the configuration are given as --set " + key + "=" + value;
  const std::string foreign = foreign_key_hint("", name);
  return foreign.empty() ? "" : "; " + foreign + ", given as --set section.key=value";
}

// Ignores dashes, which would make short names look alike. Never suggests --help for a misspelt option.
std::string nearest_option(const std::string& option, const std::vector<std::string>& options) {
  std::vector<std::string> names;
  for (const std::string& known : options)
    if (known != "--help") names.push_back(known.substr(2));
  const std::string near = nearest_key(option.substr(2), names);
  return near.empty() ? "" : "--" + near;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string stray_arguments_message(const std::vector<std::string>& words, const std::vector<std::string>& options) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  all += words.size() == 1 ? ": is no argument" : ": are no arguments";
  const std::string& first = words.front();
  if (!first.starts_with("--")) return all;
  const std::size_t equals = first.find('=');
  const std::string name = first.substr(2, equals == first.npos ? first.npos : equals - 2);
  const std::string value = equals != first.npos                              ? first.substr(equals + 1)
                            : words.size() > 1 && !words[1].starts_with("--") ? words[1]
                                                                              : "VALUE";
  std::string option = "--" + name;
  std::replace(option.begin(), option.end(), '_', '-');
  if (holds(options, option)) return all + "; the option is " + option;
  if (holds(options, "--set"))
    if (const std::string hint = key_hint(name, value); !hint.empty()) return all + hint;
  const std::string near = nearest_option(option, options);
  return near.empty() ? all : all + "; the nearest option is " + near;
}

}  // namespace zero

#include "zero/programs/stray_arguments.h"

#include <algorithm>

#include "zero/config/nearest_key.h"

namespace zero {
namespace {

// Compares without dashes, which would make short names alike. Never suggests --help for a misspelt option.
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

std::string stray_arguments_message(const std::vector<std::string>& words, const std::vector<std::string>& options,
                                    KeyHint hint) {
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
  if (hint && holds(options, "--set"))
    if (const std::string meaning = hint(name, value); !meaning.empty()) return all + meaning;
  const std::string near = nearest_option(option, options);
  return near.empty() ? all : all + "; the nearest option is " + near;
}

}  // namespace zero

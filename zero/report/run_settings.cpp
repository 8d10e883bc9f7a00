#include "zero/report/run_settings.h"

#include <toml++/toml.h>

#include <charconv>
#include <set>
#include <sstream>

#include "base/error.h"

namespace zero {
namespace {

std::string shown_value(const toml::node& node) {
  if (const auto word = node.value_exact<std::string>()) return *word;
  if (const auto number = node.value_exact<double>()) {  // the shortest form: 0.9, not 0.90000000000000002
    char buffer[32];
    return {buffer, std::to_chars(buffer, buffer + sizeof buffer, *number).ptr};
  }
  if (const toml::array* list = node.as_array()) {
    std::string items;
    for (const toml::node& item : *list) items += (items.empty() ? "" : ", ") + shown_value(item);
    return "[" + items + "]";
  }
  std::ostringstream out;
  node.visit([&](const auto& value) { out << toml::toml_formatter(value); });
  std::string line;
  for (const char c : out.str()) line += c == '\n' ? ' ' : c;
  return line;
}

void add_settings(const toml::table& table, const std::string& prefix, RunSettings& settings) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table())
      add_settings(*inner, name + ".", settings);
    else
      settings[name] = shown_value(node);
  }
}

}  // namespace

RunSettings parse_settings(std::string_view toml) {
  try {
    RunSettings settings;
    add_settings(toml::parse(toml), "", settings);
    return settings;
  } catch (const toml::parse_error& error) {
    throw InputError("is not valid TOML (line " + std::to_string(error.source().begin.line) + ")");
  }
}

std::vector<std::string> differing_keys(const std::vector<const RunSettings*>& runs) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> holders;
  std::size_t known = 0;
  for (const RunSettings* run : runs) {
    known += !run->empty();
    for (const auto& [key, value] : *run) {
      values[key].insert(value);
      ++holders[key];
    }
  }
  std::vector<std::string> differing;
  for (const auto& [key, found] : values)
    if (key != "job.output_dir" && (found.size() > 1 || holders[key] < known)) differing.push_back(key);
  return differing;
}

}  // namespace zero

#include "zero/optim/optimizer_options.h"

#include <sstream>

namespace zero {
namespace {

template <typename Value>
void line(std::ostream& lines, const char* name, const Value& value) {
  lines << name << ' ' << value << '\n';
}
template <typename Value>
void line(std::ostream& lines, const char* name, const std::optional<Value>& value) {
  if (value) line(lines, name, *value);
}

// Adding a field to the struct is a compile error here.
void describe(std::ostream& lines, const OptimizerGroup& group) {
  const auto& [match, optimizer, lr, weight_decay, lr_adamw, place] = group;
  static_cast<void>(place);  // the place in a file is not a setting
  lines << "group";
  for (const std::string& pattern : match) lines << ' ' << pattern;
  lines << '\n';
  line(lines, "group's optimizer", optimizer);
  line(lines, "group's lr", lr);
  line(lines, "group's weight_decay", weight_decay);
  line(lines, "group's lr_adamw", lr_adamw);
}

}  // namespace

std::string lines_of(const OptimizerOptions& options) {
  std::ostringstream lines;
  lines.precision(17);
  line(lines, "optimizer", options.name);
  for (const RuleSetting& setting : rule_settings())
    for (const SettingField& field : setting.fields)
      std::visit([&](auto at) { line(lines, field.name.c_str(), options.*at); }, field.at);
  for (const OptimizerGroup& group : options.groups) describe(lines, group);
  return lines.str();
}

}  // namespace zero

#include "zero/library/optimizer_options_of.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

struct AnyField {
  template <typename Field>
  operator Field() const;  // NOLINT(google-explicit-constructor): never defined
};

/// Returns the number of fields of a plain struct.
template <typename Plain, typename... Before>
constexpr int fields_of() {
  if constexpr (requires { Plain{Before{}..., AnyField{}}; })
    return fields_of<Plain, Before..., AnyField>();
  else
    return int(sizeof...(Before));
}

const char* name_of(const AdamWOptions&) { return "adamw"; }
const char* name_of(const AdamW8bitOptions&) { return "adamw8bit"; }
const char* name_of(const SgdOptions&) { return "sgd"; }
const char* name_of(const LionOptions&) { return "lion"; }
const char* name_of(const AdafactorOptions&) { return "adafactor"; }
const char* name_of(const ProdigyOptions&) { return "prodigy"; }
const char* name_of(const MuonOptions&) { return "muon"; }

// Copies the field of the same name for each setting. A field without a setting is a compile error.
template <typename Given>
OptimizerOptions convert(const Given& given) {
  OptimizerOptions options = optimizer_row(name_of(given)).defaults;
  constexpr int settings = 0
#define SETTING(type, field, ...) +int(requires(Given g) { g.field; })
#include "zero/optim/rule_settings.inl"
#undef SETTING
      ;
  static_assert(fields_of<Given>() == settings + 1, "fields are settings of zero/optim/rule_settings.inl, and groups");
#define SETTING(type, field, ...) \
  if constexpr (requires { given.field; }) options.field = given.field;
#include "zero/optim/rule_settings.inl"
#undef SETTING
  for (const ParameterGroupOptions& group : given.groups)
    options.groups.push_back({group.match, group.optimizer, group.lr, group.weight_decay});
  return options;
}

void check(bool holds, const char* name, double value, const char* rule) {
  if (!holds || !std::isfinite(value)) throw InputError(text("optimizer settings: ", name, " = ", value, ": ", rule));
}
void check(const Bound& bound, const char* name, double value) {
  check(bound.library_accepts(value), name, value, bound.library_text.c_str());
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// Checks the bounds that the configuration's keys have (docs/configuration.md).
void check(const OptimizerOptions& options) {
  for (const RuleSetting& setting : rule_settings())
    for (const SettingField& field : setting.fields)
      std::visit([&](auto at) { check(setting.bound, field.name.c_str(), double(options.*at)); }, field.at);
  for (const OptimizerGroup& group : options.groups) {
    if (group.match.empty())
      throw InputError("optimizer settings: a group without match: name the parameters that it is of");
    if (const auto known = optimizer_names();
        group.optimizer && std::ranges::find(known, *group.optimizer) == known.end())
      throw InputError("optimizer settings: a group's optimizer = \"" + *group.optimizer + "\": one of " +
                       joined(known));
    check(rule_setting("lr").bound, "lr of a group", group.lr.value_or(0));
    check(rule_setting("weight_decay").bound, "weight_decay of a group", group.weight_decay.value_or(0));
  }
}

}  // namespace

OptimizerOptions optimizer_options_of(const OptimizerSettings& settings) {
  OptimizerOptions options = std::visit([](const auto& one) { return convert(one); }, settings);
  check(options);
  return options;
}

}  // namespace zero

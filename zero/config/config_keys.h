#pragma once
// The table of all configuration keys. Parsing, refusals, the resolved configuration and docs/configuration.md are
// loops over it: a new key is a field in config.h and a row in config_keys.cpp. Keys of [optimizer] that rules read come
// from zero/optim/rule_settings.inl.
#include <array>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "zero/config/config.h"

namespace zero {

/// A given value, in the type its key holds.
using Value = std::variant<std::string, bool, std::int64_t, double, std::vector<std::string>, std::array<double, 2>>;

/// Two fields that one key gives.
struct NumberPair {
  double *first, *second;
};

/// Where a value goes: a field of a Config. Optional fields may be without one.
using Field = std::variant<std::string*, bool*, std::int64_t*, double*, std::vector<std::string>*, NumberPair,
                           std::optional<std::string>*, std::optional<std::int64_t>*, std::optional<double>*>;

/// What a value must satisfy beyond its type; `text` completes "must be ...", empty when anything goes.
struct Rule {
  std::string text;
  std::function<bool(const Value&)> accepts;
};

struct ConfigKey {
  std::string section;
  std::string name;
  std::function<Field(Config&)> field;  // makes [lora] present
  Rule rule;
  std::string doc;
  bool required = false;
  bool flag_word = false;   // a string key whose words true and false may stand without quotes, as in PEFT
  bool may_change = false;  // a resumed run may have another value (resume_settings.h has whole sections of such keys)

  std::string full_name() const { return section + "." + name; }
};

/// In the order of the documentation; the keys of a section stand together. Fields of [model] beside a preset have no
/// row.
const std::vector<ConfigKey>& config_keys();

/// A key of an [[optimizer.group]] table.
struct GroupKey {
  std::string name;
  Field (*field)(OptimizerGroup&);
  Rule rule;
};
const std::vector<GroupKey>& group_keys();

/// Names in the order of the documentation: sections, the keys of one (and `group` in [optimizer]), those of a group.
std::vector<std::string> section_names();
std::vector<std::string> keys_of(const std::string& section);
std::vector<std::string> group_key_names();
/// The first section that has a key of this name; empty: none.
std::string section_with(const std::string& name);

/// The type for people: "string", "integer", "number", "true or false", "list of strings", "list of two numbers".
std::string type_name(const Field& field);

/// The field's value, nullopt when an optional field has none.
std::optional<Value> read_field(const Field& field);

/// Stores a value of the field's type.
void write_field(const Field& field, const Value& value);

/// A value as TOML; round trips exactly.
std::string toml_text(const Value& value);

/// docs/configuration.md.
std::string configuration_markdown();

}  // namespace zero

#pragma once
// The table of all configuration keys. Parsing, checks, the resolved configuration and docs/configuration.md are loops
// over it. A new key is a field in config.h and a row in config_keys.cpp. Keys of [optimizer] that update rules read
// come from zero/optim/rule_settings.inl.
#include <array>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "zero/config/config.h"

namespace zero {

/// A given value in its key's type.
using Value = std::variant<std::string, bool, std::int64_t, double, std::vector<std::string>, std::vector<double>,
                           std::array<double, 2>>;

/// Two fields that one key sets.
struct NumberPair {
  double *first, *second;
};

/// The destination of a value: a field of a Config. Optional fields may be empty.
using Field =
    std::variant<std::string*, bool*, std::int64_t*, double*, std::vector<std::string>*, std::vector<double>*,
                 NumberPair, std::optional<std::string>*, std::optional<std::int64_t>*, std::optional<double>*>;

/// A constraint on a value beyond its type; `text` completes "must be ...", empty if there is none.
struct Rule {
  std::string text;
  std::function<bool(const Value&)> accepts;
};

struct ConfigKey {
  std::string section;
  std::string name;
  std::function<Field(Config&)> field;  // creates an optional section if missing
  Rule rule;
  std::string doc;
  bool required = false;
  bool flag_word = false;   // a string key that also accepts true and false without quotes, as in PEFT
  bool may_change = false;  // a resumed run may have another value (resume_settings.cpp lists more such keys and
                            // sections)

  std::string full_name() const { return section + "." + name; }
};

/// In documentation order; keys of a section are adjacent. Fields of [model] that change a preset have no
/// row.
const std::vector<ConfigKey>& config_keys();

/// A key of an [[optimizer.group]] table.
struct GroupKey {
  std::string name;
  Field (*field)(OptimizerGroup&);
  Rule rule;
};
const std::vector<GroupKey>& group_keys();

/// True for sections whose presence alone changes a run.
bool is_optional(const std::string& section);
/// True unless it is an optional section that the configuration lacks.
bool has_section(const Config& config, const std::string& section);

/// Names in documentation order: of sections, of a section's keys (including `group` in [optimizer]), of a group's
/// keys.
std::vector<std::string> section_names();
std::vector<std::string> keys_of(const std::string& section);
std::vector<std::string> group_key_names();
/// Returns the first section with a key of this name; empty if there is none.
std::string section_with(const std::string& name);

/// The type in words: "string", "integer", "number", "true or false", "list of strings", "list of numbers",
/// "list of two numbers".
std::string type_name(const Field& field);

/// Returns the field's value; nullopt if an optional field is empty.
std::optional<Value> read_field(const Field& field);

/// Stores a value of the field's type.
void write_field(const Field& field, const Value& value);

/// Returns a value as TOML, which reads back exactly equal.
std::string toml_text(const Value& value);

/// The fields of config.json that [model] changes beside a preset, one line each.
std::string model_fields_toml(const ModelSection& model);

/// The text of docs/configuration.md.
std::string configuration_markdown();

}  // namespace zero

// Values of configuration keys: reads and writes fields, formats TOML, and generates the documentation from the table.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "zero/config/config_keys.h"
#include "zero/config/optimizer_settings.h"

namespace zero {
namespace {

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};

std::string quoted(const std::string& text) {
  // JSON's escapes are valid in TOML, but TOML also requires one for DEL.
  std::string json = nlohmann::json(text).dump(), out;
  for (char c : json) out += c == '\x7f' ? std::string("\\u007f") : std::string(1, c);
  return out;
}

std::string number_text(double number) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number);  // the shortest text that reads back equal
  std::string text(buffer, end.ptr);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

template <class List, class Format>
std::string list_text(const List& list, Format format) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + format(list[i]);
  return text + "]";
}

// JSON as TOML: only objects differ.
std::string toml_of(const nlohmann::json& json) {
  if (json.is_string()) return quoted(json.get<std::string>());
  if (!json.is_structured()) return json.dump();
  std::string text;
  for (const auto& [name, value] : json.items())
    text += (text.empty() ? "" : ", ") + (json.is_object() ? quoted(name) + " = " : std::string()) + toml_of(value);
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// The name as it appears before "=".
std::string key_text(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
  return bare ? name : quoted(name);
}

std::string group_markdown() {
  return R"(
Groups of tensors may be treated differently; the first group that matches counts:

```toml
[[optimizer.group]]
match = ["*.bias", "model.embed_tokens.*"]   # names as in the model's files, or one of them as a string
optimizer = "adamw"                          # else that of the run
lr = 3e-4                                    # at the peak of the schedule, which all tensors follow
weight_decay = 0.0                           # of all matching tensors, vectors too
```

- Patterns are a shell's (fnmatch). `*` stands for any characters including dots, `?` for one,
  `[ab]` for one of these, `[!ab]` for one of the others. They match whole names.
- A group with the run's optimizer takes its other settings from the run. A group with another
  optimizer uses that one's defaults, of lr and weight_decay too. The AdamW that accompanies a muon
  or an adamw8bit run counts as the run's, with its betas and eps.
- The `lr` of a muon group is the rate of matrices in blocks. AdamW takes its other tensors, at the
  group's `lr_adamw`. The default of `lr_adamw` is the run's if the run's optimizer is muon, else
  Muon's default.
- A group's own rate, and `lr_adamw`, follow the schedule as a fraction of their own peak, whatever
  the run's `lr`. With `lr = 0` in `[optimizer]` the groups with a rate of their own are trained,
  and the rest stands still.
- Several prodigy groups share one estimate, which follows the rate of the run. If the run has
  another optimizer or the rate 0, it follows the first group with a rate above 0. A group at rate 0
  has no part in it.
- Four mistakes are refused: a pattern that no trained tensor matches, and a group whose tensors all
  belong to groups before it. The others are a muon group without a matrix in a block, and a rate
  that none of a group's tensors has.
)";
}

std::string default_text(const ConfigKey& key) {
  if (key.required) return "required";
  Config defaults;
  const std::optional<Value> value = read_field(key.field(defaults));
  return value ? "`" + toml_text(*value) + "`" : "none";
}

/// True if lora.adapter sets the key. This section's own value would contradict the adapter.
bool is_given_by_adapter(const Config& config, const ConfigKey& key) {
  if (key.section != "lora" || !config.lora || config.lora->adapter.empty()) return false;
  for (const char* name :
       {"r", "lora_alpha", "lora_dropout", "target_modules", "modules_to_save", "use_rslora", "use_dora"})
    if (key.name == std::string(name)) return true;
  return false;
}

}  // namespace

std::string type_name(const Field& field) {
  static const char* const names[] = {"string", "true or false",   "integer",
                                      "number", "list of strings", "list of two numbers",
                                      "string", "integer",         "number"};
  static_assert(std::variant_size_v<Field> == std::size(names));
  return names[field.index()];
}

std::optional<Value> read_field(const Field& field) {
  return std::visit(
      [](auto target) -> std::optional<Value> {
        if constexpr (std::is_same_v<decltype(target), NumberPair>) {
          return Value(std::array{*target.first, *target.second});
        } else if constexpr (requires { target->has_value(); }) {
          if (!target->has_value()) return std::nullopt;
          return Value(**target);
        } else {
          return Value(*target);
        }
      },
      field);
}

void write_field(const Field& field, const Value& value) {
  std::visit(
      [&](auto target) {
        if constexpr (std::is_same_v<decltype(target), NumberPair>) {
          const auto& pair = std::get<std::array<double, 2>>(value);
          *target.first = pair[0];
          *target.second = pair[1];
        } else {
          *target = std::get<typename Plain<std::remove_pointer_t<decltype(target)>>::type>(value);
        }
      },
      field);
}

std::string toml_text(const Value& value) {
  if (auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  if (auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (auto* list = std::get_if<std::vector<std::string>>(&value)) return list_text(*list, quoted);
  return list_text(std::get<std::array<double, 2>>(value), number_text);
}

std::string resolved_toml(const Config& config) {
  Config values = config;
  std::string page, section;
  for (const ConfigKey& key : config_keys()) {
    if ((key.section == "lora" && !config.lora) || !is_read(config, key) || is_given_by_adapter(config, key)) continue;
    if (key.section != section) {
      if (section == "optimizer") page += groups_toml(config.optimizer);
      page += (section.empty() ? "[" : "\n[") + key.section + "]\n";
      section = key.section;
    }
    if (const std::optional<Value> value = read_field(key.field(values)))
      page += key.name + " = " + toml_text(*value) + "\n";
    if (key.full_name() == "model.path")
      for (const auto& [name, json] : config.model.fields)
        page += key_text(name) + " = " + toml_of(nlohmann::json::parse(json)) + "\n";
  }
  return page;
}

std::string configuration_markdown() {
  std::string page =
      "# Configuration\n\n"
      "One TOML file describes a run. Every key may also be given as `--set section.key=value`. Such a\n"
      "value is TOML, else taken as a string. If two keys exclude each other (preset and path, steps and\n"
      "epochs), the given one displaces the file's. Paths are relative to the working directory. Unknown\n"
      "keys, wrong types, impossible values and contradictions are refused before anything is allocated,\n"
      "with exit code 2. A test keeps this page equal to the table in `zero/config/config_keys.cpp`, from\n"
      "which it is made.\n";
  std::string section;
  for (const ConfigKey& key : config_keys()) {
    if (key.section != section) {
      section = key.section;
      page += "\n## [" + section + "]\n\n| key | type | default | must be | meaning |\n|---|---|---|---|---|\n";
    }
    Config config;
    if (key.full_name() == "lr_scheduler.type") page.insert(page.rfind("\n## [lr_scheduler]"), group_markdown());
    page += "| `" + key.name + "` | " + type_name(key.field(config)) + " | " + default_text(key) + " | " +
            key.rule.text + " | " + key.doc + " |\n";
  }
  return page;
}

}  // namespace zero

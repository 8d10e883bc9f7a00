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
Groups of tensors can have their own settings. The first group that matches a tensor applies:

```toml
[[optimizer.group]]
match = ["*.bias", "model.embed_tokens.*"]   # tensor names in the model's files: a list, or one string
optimizer = "adamw"                          # default: the run's optimizer
lr = 3e-4                                    # peak rate; all tensors follow the same schedule
weight_decay = 0.0                           # of all matching tensors, including vectors
```

- Patterns are those of a shell (fnmatch) and match whole names. `*` stands for any characters,
  including dots, and `?` for one character. `[ab]` stands for one of the listed characters, `[!ab]`
  for any other.
- A group with the run's optimizer takes its other settings from the run. A group with another
  optimizer uses the defaults of that optimizer, including lr and weight_decay. In a muon or
  adamw8bit run, adamw also counts as the run's optimizer and uses the run's betas and eps.
- The `lr` of a muon group is the rate of matrices in blocks. AdamW updates the group's other
  tensors, at the group's `lr_adamw`. If the run's optimizer is muon, `lr_adamw` defaults to the
  run's value, otherwise to Muon's default.
- A group's own rate, and `lr_adamw`, follow the schedule as a fraction of their own peak,
  independent of the run's `lr`. With `lr = 0` in `[optimizer]` only groups with their own rate are
  trained.
- Several prodigy groups share one estimate of the distance, which uses the run's rate. If the run
  has another optimizer or the rate 0, it uses the rate of the first group with a rate above 0. A
  group with rate 0 does not contribute to the estimate.
- A pattern that matches no trained tensor is refused, and so is a group whose tensors all belong to
  earlier groups. A muon group without a matrix in a block is refused too. So is a rate that applies
  to none of a group's tensors.
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
  static const char* const names[] = {"string",          "true or false",       "integer", "number",  "list of strings",
                                      "list of numbers", "list of two numbers", "string",  "integer", "number"};
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
  if (auto* list = std::get_if<std::vector<double>>(&value)) return list_text(*list, number_text);
  return list_text(std::get<std::array<double, 2>>(value), number_text);
}

std::string resolved_toml(const Config& config) {
  Config values = config;
  std::string page, section;
  for (const ConfigKey& key : config_keys()) {
    if (!is_read(config, key) || is_given_by_adapter(config, key)) continue;
    if (key.section != section) {
      if (section == "optimizer") page += groups_toml(config.optimizer);
      page += (section.empty() ? "[" : "\n[") + key.section + "]\n";
      section = key.section;
    }
    if (const std::optional<Value> value = read_field(key.field(values)))
      page += key.name + " = " + toml_text(*value) + "\n";
    if (key.full_name() == "model.path") page += model_fields_toml(config.model);
  }
  return page;
}

std::string model_fields_toml(const ModelSection& model) {
  std::string lines;
  for (const auto& [name, json] : model.fields)
    lines += key_text(name) + " = " + toml_of(nlohmann::json::parse(json)) + "\n";
  return lines;
}

std::string configuration_markdown() {
  std::string page =
      "# Configuration\n\n"
      "One TOML file describes a run. Every key can also be given as `--set section.key=value`. The value\n"
      "is parsed as TOML; if that fails, it is taken as a string. If two keys exclude each other (preset\n"
      "and path, steps and epochs), the one on the command line replaces the one in the file. Paths are\n"
      "relative to the working directory. Unknown keys, wrong types, invalid values and contradictions\n"
      "are refused with exit code 2 before anything is allocated. This page is generated from the table\n"
      "in `zero/config/config_keys.cpp`, and a test keeps the two equal.\n";
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

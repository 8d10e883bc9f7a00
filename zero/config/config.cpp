#include "zero/config/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files/lookup.h"
#include "zero/config/config_keys.h"
#include "zero/config/config_rules.h"
#include "zero/config/foreign_keys.h"
#include "zero/config/mistakes.h"
#include "zero/config/nearest_key.h"
#include "zero/config/optimizer_settings.h"
#include "zero/optim/optimizer_set.h"

namespace zero {
namespace {

constexpr std::size_t max_file_bytes = 1 << 20;

// A given value, and the prefix of every message about it.
struct Given {
  const toml::node& node;
  std::string origin;  // "config.toml:12: [zero] stage = 3" or "--set zero.stage=3"
};

// Keeps a message on one line, whatever a user's names and values contain.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text;
}

[[noreturn]] void refuse(const std::string& where, const std::string& rule) {
  throw InputError(one_line(where + ": " + rule));
}

template <class Formatter>
std::string formatted(const toml::node& node) {
  constexpr auto flags = Formatter::default_flags & ~toml::format_flags::allow_literal_strings;
  std::ostringstream out;
  node.visit([&](const auto& concrete) { out << Formatter(concrete, flags); });
  return out.str();
}

// Writes numbers with the fewest digits that read back equal.
std::string toml_of(const toml::node& node) {
  if (const auto number = node.value_exact<double>(); number && std::isfinite(*number)) return toml_text(*number);
  if (!node.is_array() || node.as_array()->empty()) return formatted<toml::toml_formatter>(node);
  std::string text;
  for (const toml::node& item : *node.as_array()) text += (text.empty() ? "" : ", ") + toml_of(item);
  return "[ " + text + " ]";
}

// The value on one line, truncated if long.
std::string shown(const toml::node& node) {
  std::string text = toml_of(node), line;
  for (char c : text)
    if (c != '\n' && !(c == ' ' && !line.empty() && line.back() == ' ')) line += c;
  if (line.size() > 80) line.replace(77, std::string::npos, "...");
  return line;
}

std::string kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list of " + std::to_string(node.as_array()->size());
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

std::string with_article(const std::string& type) {
  if (type == "true or false") return type;
  return (type[0] == 'i' ? "an " : "a ") + type;
}

// Returns "be between 0 and 1" or "not be empty".
std::string be(const std::string& rule) { return rule.starts_with("not ") ? "not be " + rule.substr(4) : "be " + rule; }

// toml++ does not convert an integer above 2^53 to double.
double number_of(const toml::node& node) {
  return node.is_integer() ? static_cast<double>(*node.value_exact<std::int64_t>()) : *node.value_exact<double>();
}

// Returns the node as a T, or nullopt if it has another type. Integers count as numbers, and a string or a number as a
// list with one element.
template <class T>
std::optional<T> as(const toml::node& node) {
  if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (node.is_number()) return T{number_of(node)};
    if (!node.is_array()) return std::nullopt;
    T list;
    for (const toml::node& item : *node.as_array()) {
      if (!item.is_number()) return std::nullopt;
      list.push_back(number_of(item));
    }
    return list;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    if (auto one = node.value_exact<std::string>()) return T{*one};
    if (!node.is_array()) return std::nullopt;
    T list;
    for (const toml::node& item : *node.as_array()) {
      auto text = item.value_exact<std::string>();
      if (!text) return std::nullopt;
      list.push_back(*text);
    }
    return list;
  } else if constexpr (std::is_same_v<T, std::array<double, 2>>) {
    const toml::array* pair = node.as_array();
    if (!pair || pair->size() != 2 || !(*pair)[0].is_number() || !(*pair)[1].is_number()) return std::nullopt;
    return T{number_of((*pair)[0]), number_of((*pair)[1])};
  } else if constexpr (std::is_same_v<T, double>) {
    return node.is_number() ? std::optional(number_of(node)) : std::nullopt;
  } else {
    return node.value_exact<T>();
  }
}

template <class T>
std::optional<Value> value_for(T*, const toml::node& node) {
  if (auto value = as<T>(node)) return Value(std::move(*value));
  return std::nullopt;
}
template <class T>
std::optional<Value> value_for(std::optional<T>*, const toml::node& node) {
  return value_for(static_cast<T*>(nullptr), node);
}
std::optional<Value> value_for(NumberPair, const toml::node& node) {
  return value_for(static_cast<std::array<double, 2>*>(nullptr), node);
}

// A NUL would truncate the path.
bool has_nul(const Value& value) {
  const auto holds = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (auto* one = std::get_if<std::string>(&value)) return holds(*one);
  if (auto* list = std::get_if<std::vector<std::string>>(&value)) return std::any_of(list->begin(), list->end(), holds);
  return false;
}

bool is_finite(const Value& value) {
  if (auto* number = std::get_if<double>(&value)) return std::isfinite(*number);
  if (auto* list = std::get_if<std::vector<double>>(&value))
    return std::ranges::all_of(*list, [](double x) { return std::isfinite(x); });
  if (auto* pair = std::get_if<std::array<double, 2>>(&value))
    return std::isfinite((*pair)[0]) && std::isfinite((*pair)[1]);
  return true;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void refuse_unknown_section(const std::string& name, const std::string& where) {
  const std::string home = section_with(name), near = nearest_key(name, section_names()),
                    foreign = foreign_key_hint("", name);
  if (!home.empty()) refuse(where, "unknown section; `" + name + "` is a key of [" + home + "]");
  if (!foreign.empty()) refuse(where, "unknown section; " + foreign);
  if (!near.empty()) refuse(where, "unknown section; the nearest known one is [" + near + "]");
  refuse(where, "unknown section; known are " + joined(section_names()));
}

[[noreturn]] void refuse_unknown_key(const std::string& section, const std::string& name, const std::string& where) {
  const std::string home = section_with(name), near = nearest_key(name, keys_of(section)),
                    foreign = foreign_key_hint(section, name);
  if (!foreign.empty()) refuse(where, "unknown key in [" + section + "]; " + foreign);
  if (!home.empty()) refuse(where, "unknown key in [" + section + "]; `" + name + "` is a key of [" + home + "]");
  if (!near.empty()) refuse(where, "unknown key in [" + section + "]; the nearest known key is `" + near + "`");
  refuse(where, "unknown key in [" + section + "]; known are " + joined(keys_of(section)));
}

// [model] accepts any field of config.json. A near miss of preset or path, or a key of another section or tool, is a
// mistake.
bool is_model_field(const std::string& name) {
  return section_with(name).empty() && foreign_key_hint("model", name).empty() && edit_distance(name, "preset") > 2 &&
         edit_distance(name, "path") > 1;
}

class Reader {
 public:
  Reader(Config& config, Mistakes& mistakes) : config_(config), mistakes_(mistakes) {}

  void read_file(std::string_view text) {
    try {
      const toml::table root = toml::parse(text, config_.source);
      for (const auto& [name, node] : root)
        mistakes_.allow([&, &name = name, &node = node] { read_section(std::string(name.str()), node); });
    } catch (const toml::parse_error& error) {
      const std::string hint = foreign_text_hint(text);
      const std::string form = "; a line is `key = value`, with texts in \"quotes\" and lists as [\"a\", \"b\"]";
      refuse(line_of(error.source()),
             "not valid TOML: " + (hint.empty() ? std::string(error.description()) + form : hint));
    }
  }

  void read_override(const std::string& pair, const std::string& place) {
    const std::size_t equals = pair.find('='), dot = pair.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals) refuse_without_section(pair, place);
    const std::string section = trimmed(pair.substr(0, dot)), name = trimmed(pair.substr(dot + 1, equals - dot - 1));
    if (keys_of(section).empty()) refuse_unknown_section(section, place);
    const toml::table value = override_value(trimmed(pair.substr(equals + 1)), place);
    open_section(section);
    read_key(section, name, {*value.get("value"), place});
    displace_other(section + "." + name);
    config_.overridden.insert(section + "." + name);
  }

 private:
  // Creates an optional section, which a file may name without keys.
  void open_section(const std::string& name) {
    for (const ConfigKey& key : config_keys())
      if (key.section == name) key.field(config_);
  }

  // An override of one of two exclusive keys replaces the file's other one and its dependent keys.
  void displace_other(const std::string& key) {
    const auto displace = [&](const std::string& other) {
      if (config_.overridden.contains(other)) return false;
      config_.origin.erase(other);
      return true;
    };
    if (key == "training.steps" && displace("training.epochs")) config_.training.epochs.reset();
    if (key == "training.epochs" && displace("training.steps")) config_.training.steps.reset();
    if (key == "model.preset" && displace("model.path")) config_.model.path.reset();
    if (key == "model.path" && displace("model.preset")) {
      config_.model.preset.reset();
      std::erase_if(config_.model.fields, [&](const auto& field) { return displace("model." + field.first); });
    }
  }

  std::string line_of(const toml::source_region& source) const {
    return config_.source + ":" + std::to_string(source.begin.line);
  }

  static std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
  }

  // Throws InputError for "key=value" without a section, with a hint if the key belongs to another section or tool.
  [[noreturn]] static void refuse_without_section(const std::string& pair, const std::string& place) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string name = trimmed(pair.substr(0, equals)), home = section_with(name),
                      foreign = foreign_key_hint("", name);
    if (equals < pair.size() && !keys_of(name).empty())
      refuse(place, "`" + name + "` is a section; must be --set " + name + ".key=value, as in --set " + name + "." +
                        keys_of(name).front() + trimmed(pair.substr(equals)));
    if (equals < pair.size() && !home.empty()) refuse(place, "must be --set " + home + "." + trimmed(pair));
    if (equals < pair.size() && !foreign.empty()) refuse(place, "unknown key outside of any section; " + foreign);
    refuse(place, "must have the form section.key=value, as in --set zero.stage=2");
  }

  // Parses {value = TEXT} as TOML; if that fails, TEXT is a string.
  static toml::table override_value(const std::string& text, const std::string& place) {
    try {
      toml::table table = toml::parse("value = " + text);
      if (table.size() == 1) return table;
    } catch (const toml::parse_error&) {
    }
    try {
      toml_text(text);
    } catch (const std::exception&) {
      refuse(place, "must be UTF-8");
    }
    return toml::table{{"value", text}};
  }

  void read_section(const std::string& name, const toml::node& node) {
    const std::string place = line_of(node.source());
    const bool known = !keys_of(name).empty();
    if (!node.is_table()) {
      const std::string where = place + ": " + name + " = " + shown(node);
      if (known) refuse(where, "must be a section, [" + name + "]");
      const std::string home = section_with(name), foreign = foreign_key_hint("", name);
      if (home.empty()) refuse(where, "unknown key outside of any section" + (foreign.empty() ? "" : "; " + foreign));
      refuse(where, "must stand in section [" + home + "]");
    }
    if (!known) refuse_unknown_section(name, place + ": [" + name + "]");
    open_section(name);
    for (const auto& [key, value] : *node.as_table()) {
      const std::string place = line_of(value.source()), key_name(key.str());
      if (name == "optimizer" && key_name == "group") {
        mistakes_.allow([&, &value = value] { read_groups(value); });
        continue;
      }
      const Given given{value, one_line(place + ": [" + name + "] " + key_name + " = " + shown(value))};
      mistakes_.allow([&] { read_key(name, key_name, given); });
    }
  }

  void read_groups(const toml::node& node) {
    const std::string here = line_of(node.source()) + ": [[optimizer.group]]";
    if (!node.is_array_of_tables()) refuse(here, "must be tables of " + joined(group_key_names()));
    for (const toml::node& table : *node.as_array()) {
      OptimizerGroup group;
      group.place = line_of(table.source());
      for (const auto& [key, value] : *table.as_table()) {
        const std::string place = line_of(value.source()) + ": [[optimizer.group]] ", name(key.str());
        read_group_key(group, name, {value, one_line(place + name + " = " + shown(value))});
      }
      if (group.match.empty()) refuse(where(group), "needs match, patterns of tensors' names");
      config_.optimizer.groups.push_back(std::move(group));
    }
    config_.origin["optimizer.group"] = here;
  }

  static void read_group_key(OptimizerGroup& group, const std::string& name, const Given& given) {
    for (const GroupKey& key : group_keys())
      if (key.name == name) return write_field(key.field(group), value_of(key.field(group), key.rule, given));
    refuse(given.origin, "unknown key" + choice_among(name, group_key_names()));
  }

  void read_key(const std::string& section, const std::string& name, const Given& given) {
    for (const ConfigKey& key : config_keys())
      if (key.section == section && key.name == name) return read_known_key(key, given);
    if (section == "optimizer" && name == "group")
      refuse(given.origin, "groups of tensors are [[optimizer.group]] tables of a file");
    if (section != "model" || !is_model_field(name)) refuse_unknown_key(section, name, given.origin);
    config_.model.fields[name] = formatted<toml::json_formatter>(given.node);
    config_.origin[section + "." + name] = given.origin;
  }

  static Value value_of(const Field& field, const Rule& rule, const Given& given, bool flag_word = false) {
    std::optional<Value> value = std::visit([&](auto target) { return value_for(target, given.node); }, field);
    if (!value && flag_word && given.node.is_boolean())
      value = Value(std::string(*given.node.value<bool>() ? "true" : "false"));
    if (!value) {
      const bool has_form = type_name(field) == "string" && !rule.text.empty() && rule.text != "not empty";
      refuse(given.origin, "must be " + with_article(type_name(field)) + ", but is " + kind_of(given.node) +
                               (has_form ? "; it must " + be(rule.text) : ""));
    }
    if (has_nul(*value)) refuse(given.origin, "must not hold the character NUL");
    if (!is_finite(*value)) refuse(given.origin, "must be finite");
    const auto* word = std::get_if<std::string>(&*value);
    if (!rule.accepts(*value))
      refuse(given.origin, "must " + be(rule.text) + (word ? foreign_value_hint(*word, rule.text) : ""));
    return *value;
  }

  void read_known_key(const ConfigKey& key, const Given& given) {
    const Field field = key.field(config_);
    write_field(field, value_of(field, key.rule, given, key.flag_word));
    config_.origin[key.full_name()] = given.origin;
  }

  Config& config_;
  Mistakes& mistakes_;
};

void check_required(const Config& config, Mistakes& mistakes) {
  for (const ConfigKey& key : config_keys())
    if (key.required && !config.is_given(key.full_name()))
      mistakes.allow([&] { refuse(config.where(key.full_name()), "is missing and has no default. " + key.doc); });
}

std::string read_text(const std::string& path) {
  if (is_folder(path)) refuse(path, "is a directory; the configuration is a TOML file");
  std::ifstream file;
  FileCalls calls;
  const int opened = patiently(calls, [&] {
    file.clear();
    file.open(path, std::ios::binary);
    return file ? 0 : -1;
  });
  if (opened < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    const std::string why = std::string("cannot be opened: ") + std::strerror(errno) +
                            "; the configuration is a TOML file, for example examples/pretrain.toml";
    if (!absent) throw UnreadableError(path + ": " + why);
    refuse(path, why);
  }
  std::string content(max_file_bytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) throw UnreadableError(path + ": cannot be read");
  if (content.size() > max_file_bytes) refuse(path, "is larger than 1 MiB, which no configuration is");
  return content;
}

}  // namespace

Config parse_config(std::string_view text, const std::string& source, const std::vector<std::string>& overrides,
                    Contradictions contradictions, const std::map<std::string, std::string>& places) {
  Config config;
  config.source = source;
  Mistakes mistakes;
  Reader reader(config, mistakes);
  reader.read_file(text);
  for (const std::string& pair : overrides) {
    const auto place = places.find(pair);
    const std::string words = place == places.end() ? "--set " + pair : place->second;
    mistakes.allow([&] { reader.read_override(pair, one_line(words)); });
  }
  mistakes.tell();  // other checks may fail only because of these mistakes
  check_required(config, mistakes);
  mistakes.tell();
  settle_optimizer(config);
  if (contradictions == Contradictions::refused) check_contradictions(config);
  return config;
}

std::vector<OptimizerGroup> parse_groups(const std::string& toml) {
  Config config;
  Mistakes mistakes;
  Reader(config, mistakes).read_file(toml);
  mistakes.tell();
  return config.optimizer.groups;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides, Contradictions contradictions) {
  return parse_config(read_text(path), path, overrides, contradictions);
}

}  // namespace zero

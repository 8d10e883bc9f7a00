#include "zero/estimate/key_values.h"

#include "base/shell_word.h"

namespace zero {
namespace {

// Returns a value as TOML, or as a bare word, which --set reads as a string.
std::string word_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : toml_text(value);
}

}  // namespace

void set_keys(Config& config, const KeyValues& values) {
  for (const auto& [name, value] : values)
    for (const ConfigKey& key : config_keys())
      if (key.full_name() == name) write_field(key.field(config), value);
}

std::string as_arguments(const KeyValues& values) {
  std::string words;
  for (const auto& [name, value] : values) {
    words += (words.empty() ? "--set " : " --set ") + shell_word(name + "=" + word_of(value));
  }
  return words;
}

}  // namespace zero

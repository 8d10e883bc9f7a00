#include "zero/plan/commented_config.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "zero/config/config_keys.h"
#include "zero/config/optimizer_settings.h"

namespace zero {
namespace {

constexpr std::size_t width = 100;

/// The words as comment lines of at most `width` columns.
std::string comment(const std::string& words) {
  std::istringstream text(words);
  std::string lines, line = "#";
  for (std::string word; text >> word;) {
    if (line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line = "#";
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

}  // namespace

std::string commented_toml(const Config& config, const std::vector<std::string>& also,
                           const std::vector<std::string>& head) {
  ZERO_CHECK(config.optimizer.groups.empty(), "keys without a row in the table");
  Config own = config, usual;
  std::string file, section;
  for (const std::string& line : head) file += comment(line);
  for (const ConfigKey& key : config_keys()) {
    if (!is_read(config, key)) continue;
    const std::optional<Value> value = read_field(key.field(own));
    if (!value) continue;
    const bool named = std::find(also.begin(), also.end(), key.full_name()) != also.end() ||
                       (key.section != section && is_optional(key.section));  // its presence says something
    const std::optional<Value> before = read_field(key.field(usual));
    if (!named && !key.required && value == before) continue;
    if (key.section != section) file += "\n[" + key.section + "]\n";
    section = key.section;
    file += comment(key.doc) + key.name + " = " + toml_text(*value) + "\n";
    if (key.full_name() == "model.preset" && !config.model.fields.empty())
      file += comment("Fields of config.json that differ from the preset's.") + model_fields_toml(config.model);
  }
  return file;
}

}  // namespace zero

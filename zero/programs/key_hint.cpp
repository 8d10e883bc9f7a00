#include "zero/programs/key_hint.h"

#include <algorithm>

#include "zero/config/config_keys.h"
#include "zero/config/foreign_keys.h"

namespace zero {
namespace {

// The key "section.key" in a word like "--zero-stage" or "--optimizer.lr"; empty for others.
std::string key_of(std::string word) {
  std::replace(word.begin(), word.end(), '-', '_');
  for (const ConfigKey& key : config_keys())
    if (word == key.name || word == key.full_name() || word == key.section + "_" + key.name) return key.full_name();
  return "";
}

}  // namespace

std::string key_hint(const std::string& name, const std::string& value) {
  if (const std::string key = key_of(name); !key.empty())
    return "; keys of the configuration are given as --set " + key + "=" + value;
  const std::string foreign = foreign_key_hint("", name);
  return foreign.empty() ? "" : "; " + foreign + ", given as --set section.key=value";
}

SettableKeys settable_keys() {
  SettableKeys keys{key_hint, {}};
  for (const ConfigKey& key : config_keys()) keys.names.push_back(key.full_name());
  return keys;
}

}  // namespace zero

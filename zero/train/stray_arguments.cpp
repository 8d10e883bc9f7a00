#include "zero/train/stray_arguments.h"

#include <algorithm>

#include "zero/train/config_keys.h"
#include "zero/train/foreign_keys.h"

namespace zero {
namespace {

// "section.key" of what a word like "--zero-stage" or "--optimizer.lr" names; empty for others.
std::string key_of(std::string word) {
  std::replace(word.begin(), word.end(), '-', '_');
  for (const ConfigKey& key : config_keys())
    if (word == key.name || word == key.full_name() || word == key.section + "_" + key.name) return key.full_name();
  return "";
}

}  // namespace

std::string stray_arguments_message(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  all += words.size() == 1 ? ": is no argument" : ": are no arguments";
  const std::string& first = words.front();
  if (!first.starts_with("--")) return all;
  const std::size_t equals = first.find('=');
  const std::string name = first.substr(2, equals == first.npos ? first.npos : equals - 2), key = key_of(name);
  const std::string value = equals != first.npos ? first.substr(equals + 1) : words.size() > 1 && !words[1].starts_with("--") ? words[1] : "VALUE";
  if (!key.empty()) return all + "; keys of the configuration are given as --set " + key + "=" + value;
  const std::string foreign = foreign_key_hint("", name);
  return foreign.empty() ? all : all + "; " + foreign + ", given as --set section.key=value";
}

}  // namespace zero

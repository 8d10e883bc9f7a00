#include "zero/programs/foreign_values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/config/foreign_keys.h"
#include "zero/config/nearest_key.h"
#include "zero/config/optimizer_settings.h"
#include "zero/optim/optimizer_table.h"

namespace zero::foreign {
namespace {

constexpr int most_slips = 2;  // of a misspelt key

std::string lower(std::string words) {
  std::transform(words.begin(), words.end(), words.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return words;
}

/// The tools' ways to ask for a flag, beside true.
const std::set<std::string>& words_that_are_on() {
  static const std::set<std::string> words{"true", "auto", "unsloth", "offload", "offload_disk"};
  return words;
}

bool is_on(const Json& value) {
  return value.is_boolean() ? value.get<bool>() : words_that_are_on().contains(words_of(value));
}

void keep_last(ForeignConfig& config) {
  std::vector<std::string> kept;
  for (auto at = config.overrides.rbegin(); at != config.overrides.rend(); ++at) {
    const std::string key = at->substr(0, at->find('=') + 1);
    if (std::none_of(kept.begin(), kept.end(), [&](const std::string& set) { return set.starts_with(key); }))
      kept.push_back(*at);
  }
  config.overrides.assign(kept.rbegin(), kept.rend());
}

const std::map<std::string, std::string>& optimizers() {
  static const std::map<std::string, std::string> names{{"adam", "adamw"},
                                                        {"adamw", "adamw"},
                                                        {"adamw_torch", "adamw"},
                                                        {"adamw_hf", "adamw"},
                                                        {"adamw_torch_fused", "adamw"},
                                                        {"fusedadam", "adamw"},
                                                        {"adamw_8bit", "adamw8bit"},
                                                        {"adamw_bnb_8bit", "adamw8bit"},
                                                        {"paged_adamw_8bit", "adamw8bit"},
                                                        {"sgd", "sgd"},
                                                        {"lion", "lion"},
                                                        {"lion_32bit", "lion"},
                                                        {"paged_lion_32bit", "lion"},
                                                        {"adafactor", "adafactor"},
                                                        {"prodigy", "prodigy"},
                                                        {"muon", "muon"},
                                                        {"paged_adamw_32bit", "adamw"},
                                                        {"cpuadam", "adamw"},
                                                        {"lion_pytorch", "lion"}};
  return names;
}

std::string converted(const KeyRule& rule, const Json& value, const std::string& path, ForeignConfig& config) {
  try {
    return rule.convert(value, config);
  } catch (const InputError& error) {
    throw InputError(config.source + ": " + path + " " + error.what());
  }
}

/// Drops what another key of the file gave to `key` before `path` gave `setting` (empty: a share). A setting that
/// `path` has changed in place, as one of two betas, stays.
void drop_former(ForeignConfig& config, const ForeignConfig& before, const std::string& key, const std::string& setting,
                 const std::string& path) {
  const auto drop_named = [&](const std::string& name) {
    if (name != path) config.dropped.emplace_back(name, path + " counts, which sets the same here");
  };
  for (const std::string& former : before.overrides) {
    const auto name = before.names.find(key);
    if (key_of(former) != key || former == setting || name == before.names.end()) continue;
    if (std::erase(config.overrides, former) > 0 || setting.empty()) drop_named(name->second);
  }
  for (const ForeignShare& share : before.shares)
    if (share.key == key) drop_named(share.name);
}

/// Calls `convert`, and names what it adds by the file's key.
std::string named(ForeignConfig& config, const std::string& path, const std::function<std::string()>& convert) {
  const ForeignConfig before = config;
  std::string why = convert();
  for (const std::string& setting : std::vector<std::string>(config.overrides))
    if (std::ranges::find(before.overrides, setting) == before.overrides.end()) {
      drop_former(config, before, key_of(setting), setting, path);
      config.names[key_of(setting)] = path;
    }
  for (ForeignShare& share : config.shares)
    if (share.name.empty()) {
      share.name = path;
      drop_former(config, before, share.key, "", path);
    }
  return why;
}

/// The accumulation is told once all keys are read: it may make the global batch, or follow from it.
void tell_accumulation(ForeignConfig& config) {
  const std::string accumulation = "gradient_accumulation_steps";
  for (auto& [key, why] : config.dropped)
    if (key == accumulation && !why.starts_with("\"auto\"") && why != "empty")
      why = is_set(config, "training.global_batch_size") ? "the global batch counts, and this follows from it"
            : config.rows_of_rank > 0                    ? ""
                                                         : "without a micro-batch the planner chooses the batch";
  std::erase_if(config.dropped, [&](const auto& one) { return one.first == accumulation && one.second.empty(); });
}

/// The word of a setting, by the command line or by the file; empty: neither has it.
std::string word_of(const ForeignConfig& config, const std::string& key) {
  std::string word;
  for (const std::vector<std::string>* settings : {&config.overrides, &config.given})
    for (const std::string& setting : *settings)
      if (key_of(setting) == key) word = setting.substr(key.size() + 1);
  std::erase(word, '"');
  return word;
}

/// Settings of an optimizer that is not there, or that the command line replaces.
void drop_other_optimizers(ForeignConfig& config) {
  Config with;
  if (const std::string name = word_of(config, "optimizer.name"); !name.empty()) with.optimizer.name = name;
  const std::vector<std::string> names = optimizer_names();
  if (std::ranges::find(names, with.optimizer.name) == names.end()) return;  // refused later
  for (const ConfigKey& key : config_keys())
    if (key.section == "optimizer" && !is_read(with, key))
      drop(config, key.full_name() + "=", "", "is no setting of " + with.optimizer.name);
}

}  // namespace

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

std::string words_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

Json number_of(const Json& value) {
  if (value.is_number()) return value;
  std::string digits = value.is_string() ? value.get<std::string>() : "";
  std::erase(digits, '_');
  const Json read = Json::parse(digits, nullptr, /*allow_exceptions=*/false);
  if (!read.is_number()) throw InputError("must be a number, and is " + words_of(value));
  return read;
}

void add_share(ForeignConfig& config, const ForeignShare& share) {
  std::erase_if(config.overrides, [&](const std::string& setting) { return setting.starts_with(share.key + "="); });
  std::erase_if(config.shares, [&](const ForeignShare& other) { return other.key == share.key; });
  config.shares.push_back(share);
}

void set(ForeignConfig& config, const std::string& key, const std::string& toml) {
  std::erase_if(config.shares, [&](const ForeignShare& share) { return share.key == key; });
  config.overrides.push_back(key + "=" + toml);
}

bool holds(const ForeignConfig& config, const std::string& setting) {
  return std::ranges::find(config.overrides, setting) != config.overrides.end();
}

bool is_set(const ForeignConfig& config, const std::string& key) {
  const auto sets = [&](const std::string& setting) { return setting.starts_with(key + "="); };
  return std::ranges::any_of(config.overrides, sets) || std::ranges::any_of(config.given, sets) ||
         std::ranges::any_of(config.shares, [&](const ForeignShare& share) { return share.key == key; });
}

void drop(ForeignConfig& config, const std::string& prefix, const std::string& name, const std::string& why) {
  std::erase_if(config.overrides, [&](const std::string& setting) {
    if (!setting.starts_with(prefix)) return false;
    const std::string key = key_of(setting);
    const auto own = config.names.find(key);
    config.dropped.emplace_back(!name.empty() ? name : own == config.names.end() ? key : own->second, why);
    return true;
  });
  std::erase_if(config.shares, [&](const ForeignShare& share) {
    if (!(share.key + "=").starts_with(prefix)) return false;
    config.dropped.emplace_back(share.name, why);
    return true;
  });
}

std::string set_share(ForeignConfig& config, const std::string& key, double share) {
  if (config.steps == 0) {
    add_share(config, {.key = key, .share = share, .name = ""});
    return "";
  }
  set(config, key, text(steps_of_share(share, config.steps)));
  return "";
}

void drop_shares(ForeignConfig& config, const std::string& why) {
  for (const ForeignShare& share : config.shares)
    config.dropped.emplace_back(share.name, why + "--set " + share.key + ", in steps");
  config.shares.clear();
}

std::int64_t steps_of_share(double share, std::int64_t steps) {
  const double wanted = std::ceil(share * double(steps) - 1e-6);  // not for an error of the product
  return std::max<std::int64_t>(1, std::int64_t(wanted));
}

Converter number(const std::string& key) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    set(config, key, number_of(value).dump());
    return "";
  };
}

Converter steps(const std::string& key) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    const double count = number_of(value).get<double>();
    if (count > 0 && count < 1) return set_share(config, key, count);
    if (!(count >= 0 && count < 1e10) || count != std::floor(count))
      return "no whole number of steps, and no share of the run's: " + words_of(value);
    set(config, key, text(std::int64_t(count)));
    return "";
  };
}

Converter flag(const std::string& key, const std::string& if_true, const std::string& if_false) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_boolean() && !is_on(value) && value != "false")
      throw InputError("must be true or false, and is " + words_of(value));
    const std::string& toml = is_on(value) ? if_true : if_false;
    if (toml.empty()) return "off, as here";
    set(config, key, toml);
    return "";
  };
}

Converter word(const std::string& key, const std::map<std::string, std::string>& known) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    const auto found = known.find(lower(words_of(value)));
    if (found == known.end()) return "\"" + words_of(value) + "\" has no counterpart for " + key;
    set(config, key, toml_text(found->second));
    return "";
  };
}

Converter scheduler(const std::map<std::string, std::string>& known) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    const std::string key = "lr_scheduler.type";
    if (word(key, known)(value, config).empty()) return "";
    set(config, key, "\"cosine\"");
    return words_of(value) + " is not there, so cosine counts: give --set " + key;
  };
}

Converter folder(const std::string& key) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_string() || !is_folder(value.get<std::string>()))
      return words_of(value) + ": is no folder here: give --set " + key;
    set(config, key, toml_text(value.get<std::string>()));
    return "";
  };
}

Converter text_into(std::string ForeignConfig::*field) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_string()) return "no word";
    config.*field = value.get<std::string>();
    return "";
  };
}

Converter precision(const std::string& name) { return flag("training.precision", toml_text(name)); }

KeyRule misnamed(const std::string& name) {
  return {[=](const Json&, ForeignConfig&) -> std::string {
            throw InputError("is the name of another tool: here it is " + name);
          },
          true, true};
}

KeyRule absent(const std::string& why) {
  return {[=](const Json&, ForeignConfig&) { return why; }, true};
}

std::string optimizer_into(const Json& value, ForeignConfig& config) {
  const std::string name = lower(words_of(value));
  if (name == "onebitadam" || name == "zerooneadam") {
    set(config, "optimizer.name", "\"adamw\"");
    return "as adamw: sums of gradients are not compressed here";
  }
  if (const auto found = optimizers().find(name); found != optimizers().end()) {
    set(config, "optimizer.name", toml_text(found->second));
    return "";
  }
  return words_of(value) +
         " is not there, so adamw counts, for which the rate may not suit: give --set optimizer.name and --set "
         "optimizer.lr";
}

Converter shared_rows(const std::string& key, const std::string& why) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    if (!value.is_number_integer() || value < 1) return "no number of ranks: " + words_of(value);
    config.ranks_of_row *= std::min<std::int64_t>(value.get<std::int64_t>(), 1 << 20);
    if (!key.empty()) set(config, key, value.dump());
    return why;
  };
}

/// "a.b" of "a.b.c"; empty without a point.
std::string section_of(const std::string& path) {
  const std::size_t point = path.rfind('.');
  return point == path.npos ? "" : path.substr(0, point);
}

/// True if a path with so many slips is long enough to be a misspelt key, not another one. In the section of the known
/// key its last part counts alone.
bool is_misspelt(const std::string& path, const std::string& near, int slips) {
  const std::string section = section_of(path);
  const std::size_t length =
      section == section_of(near) && !section.empty() ? path.size() - section.size() - 1 : path.size();
  return slips == 1 ? length >= 3 : length >= 8;
}

std::string why_absent(const std::string& source, const std::string& path, const KeyTable& table,
                       const PrefixReasons& prefixes, const std::vector<std::string>& tools) {
  const std::string name = path.substr(path.rfind('.') == path.npos ? 0 : path.rfind('.') + 1);
  std::vector<std::string> keys;
  for (const auto& [key, rule] : table)
    if (!rule.misnamed) keys.push_back(key);
  const std::string near = nearest_key(path, keys);
  const int distance = near.empty() ? most_slips + 1 : edit_distance(path, near);
  if (distance <= most_slips) {  // before a prefix, which misspelt keys have, too
    const std::string words = "the nearest key of " + tools.front() + " is " + near;
    if (!table.at(near).absent && is_misspelt(path, near, distance))
      throw InputError(source + ": " + path + ": is unknown here; " + words + ": correct it, or leave it out");
    return "nothing here corresponds to it; " + words;
  }
  for (const auto& [prefix, reason] : prefixes)
    if (path.starts_with(prefix)) return reason;
  const std::string hint = foreign_key_hint("", name);
  // The same word may mean something else to another tool: block_size is LitGPT's length of a row.
  const bool is_theirs =
      std::any_of(tools.begin(), tools.end(), [&](const std::string& tool) { return hint.find(tool) != hint.npos; });
  return is_theirs ? hint : "nothing here corresponds to it";
}

void walk(const Json& tree, const std::string& prefix, const KeyTable& table, ForeignConfig& config,
          const std::function<std::string(const std::string& path)>& why_unknown) {
  for (const auto& [key, value] : tree.items()) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const auto known = table.find(path);
    std::string why;
    if (value.is_null() || (value.is_string() && value.get<std::string>().empty()))
      why = "empty";
    else if (value == "auto" && path != "bf16" && !(known != table.end() && known->second.absent))
      why = "\"auto\": a Trainer fills it in there, and zero_config here; --set gives another";
    else if (known != table.end())
      why = named(config, path, [&, &value = value] { return converted(known->second, value, path, config); });
    else if (value.is_object()) {
      walk(value, path, table, config, why_unknown);
      continue;
    } else
      why = why_unknown(path);
    if (!why.empty()) config.dropped.emplace_back(path, why);
  }
}

void set_default(ForeignConfig& config, const std::string& key, const std::string& toml) {
  if (!is_set(config, key)) set(config, key, toml);
}

void drop_double_quantization(ForeignConfig& config) {
  const bool is_off = holds(config, "lora.double_quantization=false");
  drop(config, "lora.double_quantization=", "", is_off ? "off, as here" : "is for a base in NF4 alone");
}

void add_sgd_defaults(ForeignConfig& config) {
  set_default(config, "optimizer.momentum", "0.0");
  set_default(config, "optimizer.nesterov", "false");
}

void drop_without_validation(ForeignConfig& config) {
  const std::string interval = "training.validation_interval", fraction = "data.validation_fraction";
  if (!is_set(config, interval))
    drop(config, fraction, "val_set_size",
         "a validation needs an interval in steps: give --set " + interval + " and --set " + fraction);
  if (!is_set(config, interval))
    drop(config, "data.validation=", "test_datasets",
         "a validation needs an interval in steps: give --set " + interval + " and --set data.validation");
  if (is_set(config, fraction) || is_set(config, "data.validation")) return;
  const std::string data = " with " + fraction + " or data.validation";
  drop(config, interval, "", "there are no validation data: give --set " + interval + data);
  drop(config, "training.patience", "early_stopping_patience", "give --set training.patience" + data);
  drop(config, "checkpoint.keep_best", "load_best_model_at_end", "give --set checkpoint.keep_best=true" + data);
}

void finish(ForeignConfig& config) {
  keep_last(config);
  tell_accumulation(config);
  drop_other_optimizers(config);
  if (word_of(config, "lora.quantization") != "nf4") drop_double_quantization(config);
  const std::string optimizer = word_of(config, "optimizer.name");
  if (optimizer == "adamw" || optimizer == "adamw8bit") set_default(config, "optimizer.betas", "[0.9, 0.999]");
  const bool decays = holds(config, "lr_scheduler.type=\"cosine\"") || holds(config, "lr_scheduler.type=\"linear\"");
  if (decays) set_default(config, "lr_scheduler.min_lr_ratio", "0.0");
}

}  // namespace zero::foreign

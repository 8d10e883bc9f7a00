#pragma once
// ForeignValues: converts the values of another tool's configuration, one by one, and walks over all of its keys.
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "zero/programs/foreign_config.h"

namespace zero::foreign {

using Json = nlohmann::ordered_json;

/// Converts the value of one key. Returns why it has no effect; empty if it has one.
using Converter = std::function<std::string(const Json& value, ForeignConfig& config)>;
/// A key's converter. An absent key has no effect here, whatever its value.
struct KeyRule {
  // NOLINTNEXTLINE(google-explicit-constructor): a rule is a converter
  KeyRule(Converter convert, bool absent = false, bool misnamed = false)
      : convert(std::move(convert)), absent(absent), misnamed(misnamed) {}
  // NOLINTNEXTLINE(google-explicit-constructor): so is a function
  KeyRule(std::string (*convert)(const Json& value, ForeignConfig& config)) : convert(convert) {}

  Converter convert;
  bool absent = false;
  bool misnamed = false;  // of another tool
};
/// By the path of a key, such as "optimizer.params.lr".
using KeyTable = std::map<std::string, KeyRule>;
/// Reasons by the beginning of a path. The first that matches counts.
using PrefixReasons = std::vector<std::pair<std::string, std::string>>;

/// "section.key" of "section.key=value".
std::string key_of(const std::string& setting);

/// A word as it is, any other value as JSON.
std::string words_of(const Json& value);

/// A number, or a word that is one ("16", "1_000"), as JSON. Throws InputError for anything else.
Json number_of(const Json& value);

/// Adds a share of the run's steps. As with set(), the last value of a key counts.
void add_share(ForeignConfig& config, const ForeignShare& share);
void set(ForeignConfig& config, const std::string& key, const std::string& toml);
/// True if the translation has exactly this setting, "section.key=value".
bool holds(const ForeignConfig& config, const std::string& setting);
bool is_set(const ForeignConfig& config, const std::string& key);
/// Drops the settings of keys that begin with `prefix`. `name`: the file's key; empty: the key of the setting.
void drop(ForeignConfig& config, const std::string& prefix, const std::string& name, const std::string& why);
/// Sets a number of steps that is a share of the run's. If the file does not name the run's steps, they are known only
/// with the data, and the share is kept. Returns an empty string.
std::string set_share(ForeignConfig& config, const std::string& key, double share);

/// Drops all shares; `why` is followed by "--set KEY, in steps".
void drop_shares(ForeignConfig& config, const std::string& why);
/// Rounded up as transformers does, and at least 1.
std::int64_t steps_of_share(double share, std::int64_t steps);

Converter number(const std::string& key);
/// A whole number of steps, or below 1 a share of the run's steps.
Converter steps(const std::string& key);
/// `if_false` empty: false is the default here.
Converter flag(const std::string& key, const std::string& if_true, const std::string& if_false = "");
/// A word in any case, by its name here.
Converter word(const std::string& key, const std::map<std::string, std::string>& known);
/// The schedule of rates by its name here. For an unknown one cosine counts.
Converter scheduler(const std::map<std::string, std::string>& known);
/// A folder of this machine.
Converter folder(const std::string& key);
Converter text_into(std::string ForeignConfig::*field);
/// Only one of the tools' two flags is on.
Converter precision(const std::string& name);
KeyRule absent(const std::string& why);
/// A key that only other tools have. Refuses any value: the tool itself would ignore it.
KeyRule misnamed(const std::string& name);
/// The optimizer by its name there. An unknown one leaves the default.
std::string optimizer_into(const Json& value, ForeignConfig& config);
/// The ranks of an axis over which ranks share rows. Empty key: it is counted alone.
Converter shared_rows(const std::string& key, const std::string& why = "");

/// Why a key of the file `source` that the table lacks is dropped: by its prefix, or by the names of `tools` among the
/// known foreign keys. Throws InputError for a misspelt key that would have an effect here.
std::string why_absent(const std::string& source, const std::string& path, const KeyTable& table,
                       const PrefixReasons& prefixes, const std::vector<std::string>& tools);

/// Converts every value by the table, or drops it with the reason. `why_unknown`: for a path that the table lacks.
void walk(const Json& tree, const std::string& prefix, const KeyTable& table, ForeignConfig& config,
          const std::function<std::string(const std::string& path)>& why_unknown);

/// Sets a default of the tool that differs from the one here, if the file leaves the key open.
void set_default(ForeignConfig& config, const std::string& key, const std::string& toml);
/// PyTorch's defaults of SGD, which both tools take.
void add_sgd_defaults(ForeignConfig& config);
/// For a base that is not in NF4.
void drop_double_quantization(ForeignConfig& config);
/// Drops validation data without an interval, an interval without data, and settings that need validations.
void drop_without_validation(ForeignConfig& config);
/// Ends a translation: the last setting of a key counts, as on the command line. Drops settings that the optimizer does
/// not read, and double quantization without a base in NF4. Adds defaults that both tools have:
/// the betas of AdamW, and schedules that end at a rate of 0.
void finish(ForeignConfig& config);

}  // namespace zero::foreign

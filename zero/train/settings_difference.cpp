#include "zero/train/settings_difference.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/config/mistakes.h"
#include "zero/config/nearest_key.h"
#include "zero/config/optimizer_settings.h"
#include "zero/config/setup.h"
#include "zero/train/setting_keys.h"

namespace zero {
namespace {

// Keys of [job] whose changes are not reported: they determine where and how long a run trains, not how.
const std::set<std::string> untold_keys{"job.output_dir", "job.time_limit"};

bool in_another_way(const std::string& was, const std::string& is) {
  return is.find(mark_scheme) != is.npos && was.find(mark_scheme) == was.npos && was != "none";
}

struct Difference {
  std::string key, was, is;
};

std::string changed_groups(const Config& config, const std::string& was) {
  try {
    return groups_difference(config.optimizer.groups,
                             was == "none" ? std::vector<OptimizerGroup>() : parse_groups(was));
  } catch (const InputError&) {  // the groups are of another version, with other keys
    return "they are written otherwise";
  }
}

/// The value, in which the order of a list of modules does not count.
std::string comparable(const std::string& key, const std::string& value) {
  if ((key != "lora.target_modules" && key != "lora.modules_to_save") || !value.starts_with('[')) return value;
  const auto list = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return value;
  return nlohmann::json(std::set<nlohmann::json>(list.begin(), list.end())).dump();
}

/// A checkpoint of an adapter differs from a run without one in all keys of [lora], and the other way round. Replaces
/// them by one difference.
void join_adapter(std::vector<Difference>& found) {
  const auto is_of_lora = [](const Difference& d) { return d.key.starts_with("lora."); };
  const auto rank = std::ranges::find(found, "lora.r", &Difference::key);
  if (rank == found.end() || (rank->was != "none" && rank->is != "none")) return;
  const bool had = rank->was != "none";
  std::erase_if(found, [&](const Difference& d) { return is_of_lora(d) || d.key == "model.path"; });
  found.push_back({"lora", had ? "there" : "none", had ? "none" : "there"});
}

/// Adds settings that a checkpoint of the same optimizer lacks because they were introduced later. Their defaults are
/// the behaviour before they existed.
void add_optimizer_defaults(std::map<std::string, std::string>& then, const std::map<std::string, std::string>& now,
                            const Config& config) {
  const auto was = then.find("optimizer.name");
  const auto is = now.find("optimizer.name");
  if (was == then.end() || is == now.end() || was->second != is->second) return;
  Config defaults = with_optimizer_defaults(config);
  for (const ConfigKey& key : config_keys()) {
    const std::string name = key.full_name();
    if (key.section == "optimizer" && now.contains(name) && !values_before().contains(name))
      then.try_emplace(name, text_of(key, defaults));
  }
}

/// Lists the optimizer's name before its settings. Leaves out settings that only one of two preference methods has.
std::vector<Difference> differences(const Config& config, const Settings& now, const Settings& then) {
  std::map<std::string, std::string> before(then.begin(), then.end());
  const std::map<std::string, std::string> after(now.begin(), now.end());
  add_optimizer_defaults(before, after, config);
  std::erase_if(before, [](const auto& setting) { return is_dropout_field(setting.first); });
  std::set<std::string> keys;
  for (const auto& [key, value] : before) keys.insert(key);
  for (const auto& [key, value] : after) keys.insert(key);
  const auto value_in = [](const std::map<std::string, std::string>& settings, const std::string& key) {
    const auto found = settings.find(key), always = values_before().find(key);
    return found != settings.end() ? found->second : always != values_before().end() ? always->second : "none";
  };
  const std::string name = "optimizer.name", method = "preference.method";
  const bool other_optimizer = value_in(before, name) != value_in(after, name);
  const bool other_method = value_in(before, method) != value_in(after, method);
  std::vector<Difference> found;
  for (const std::string& key : keys) {
    const std::string was = value_in(before, key), is = value_in(after, key);
    if (comparable(key, was) == comparable(key, is) ||
        (key == "optimizer.group" && changed_groups(config, was).empty()))
      continue;
    const bool follows = key.starts_with("optimizer.") && key != "optimizer.group" && !config.is_given(key);
    if (key != name && other_optimizer && follows) continue;
    const bool is_of_one = was == "none" || is == "none";
    if (key != method && other_method && key.starts_with("preference.") && is_of_one) continue;
    found.insert(key == name ? found.begin() : found.end(), {key, was, is});
  }
  join_adapter(found);
  return found;
}

bool is_in(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Returns a value without the name of the marks' scheme, which means nothing to users.
std::string shown(std::string value) {
  const std::string name = mark_scheme;
  for (std::size_t at = value.find(name); at != value.npos; at = value.find(name, at)) value.erase(at, name.size());
  return value;
}

/// The keys from which another key has its value where the file does not name it.
std::vector<std::string> sources_of(const std::string& key) {
  if (key.starts_with("lora.")) return {"lora.adapter"};
  if (key.starts_with("model.") || key == "data.tokenizer" || key == "data.chat_template")
    return {"model.preset", "model.path"};
  return {};
}

/// The key of [lora] that the command line gives; empty: none.
std::string overridden_of_lora(const Config& config) {
  for (const std::string& key : config.overridden)
    if (key.starts_with("lora.")) return key;
  return "";
}

/// Where the value of a key comes from: its own place, or that of the key from which it follows.
std::string origin_of(const Config& config, const std::string& key) {
  if (config.is_given(key) || config.overridden.contains(key)) return config.where(key) + ":";
  for (const std::string& source : sources_of(key))
    if (config.is_given(source) || config.overridden.contains(source)) return config.where(source) + ": " + key;
  return config.where(key) + ":";
}

/// The run keeps the configuration that fits its checkpoints.
std::string own_configuration(const Config& config, const std::string& key) {
  // The command line would change that one, too.
  if (config.overridden.contains(key) || (key == "lora" && !overridden_of_lora(config).empty())) return "";
  for (const std::string& source : sources_of(key))
    if (config.overridden.contains(source)) return "";
  const std::string own = config.job.output_dir + "/config.toml";
  return is_same_place(config.source, own) || !is_file(own) ? "" : ", or resume by the run's own " + own;
}

std::string refusal_of(const Config& config, const Difference& d, const std::string& checkpoint) {
  const std::string begin_another = own_configuration(config, d.key) + ", or begin another run",
                    accept = ", or pass --accept-change " + d.key;
  if (d.key == "optimizer.name")
    return text(config.where(d.key), ": is ", d.is, " now, and ", d.was, " in ", checkpoint,
                ": the states of one optimizer are none of another: go on with ", d.was,
                ", or begin a run with its weights (zero_export)");
  if (d.key == "optimizer.state_dtype")
    return text(config.where(d.key), ": is ", d.is, " now, and ", d.was, " in ", checkpoint,
                ": states in one type are not read as another: go on with ", d.was,
                ", or begin a run with its weights (zero_export)");
  if (d.key == "lora" && d.is == "none")
    return text(config.source, ": has no [lora], and ", checkpoint, " is of an adapter: give the section that it had",
                begin_another);
  if (const std::string key = overridden_of_lora(config); d.key == "lora" && !key.empty())
    return text(config.where(key), ": begins an adapter, and ", checkpoint, " is of all weights: leave it out",
                begin_another);
  if (d.key == "lora")
    return text(config.source, ": has [lora], and ", checkpoint, " is of all weights: leave the section out",
                begin_another);
  if (d.key == "optimizer.group")
    return text(config.where(d.key), ": differs from ", checkpoint, ": ", changed_groups(config, d.was),
                ": give what it had", begin_another, accept,
                " to go on with the new groups where every tensor keeps its optimizer");
  if (d.is.find(mark_scheme) != d.is.npos && d.was.find(mark_scheme) != d.was.npos)
    return text(origin_of(config, d.key), " the content differs from that in ", checkpoint,
                " (size and checksum: ", shown(d.is), " now, ", shown(d.was), " then): name the files that it had",
                begin_another, accept, " to go on with these");
  return text(origin_of(config, d.key), " is ", d.is, " now, and ", d.was, " in ", checkpoint,
              ": give it the value that it had", begin_another,
              is_shape(d.key) || is_of_adapter(d.key) ? "" : accept + " to go on with the new one",
              in_another_way(d.was, d.is)
                  ? ". An earlier version described files in another way: accept it if they are the same"
                  : "");
}

}  // namespace

void check_accepted(const std::vector<std::string>& accepted) {
  std::vector<std::string> known{"optimizer.group"};
  for (const ConfigKey& key : config_keys())
    if (!is_shape(key.full_name()) && !is_of_adapter(key.full_name())) known.push_back(key.full_name());
  for (const std::string& key : accepted) {
    if (is_shape(key))
      throw InputError(text("--accept-change ", key, ": a run cannot go on with another model: begin another run"));
    if (is_of_adapter(key))
      throw InputError(text("--accept-change ", key,
                            ": the checkpoint's adapter has the tensors of its own value: keep that, or begin another "
                            "run, from the trained model (zero_export)"));
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = nearest_key(key, known);
    throw InputError(text("--accept-change ", key, ": there is no such key",
                          nearest.empty() ? "" : text("; the nearest known key is `", nearest, "`"),
                          "; it wants section.key, as in --accept-change optimizer.lr"));
  }
}

void require_same_settings(const Config& config, const Settings& now, const Settings& then,
                           const std::vector<std::string>& accepted, const std::string& checkpoint) {
  Mistakes mistakes;
  const bool has_groups = !config.optimizer.groups.empty();  // by which all tensors may keep their optimizers
  for (const Difference& d : differences(config, now, then))
    if (!is_in(accepted, d.key) || (d.key == "optimizer.name" && !has_groups))
      mistakes.allow([&] { throw InputError(refusal_of(config, d, checkpoint)); });
  mistakes.tell();
}

std::string accepted_changes(const Config& config, const Settings& now, const Settings& then,
                             const std::vector<std::string>& accepted) {
  std::string changes;
  for (const Difference& d : differences(config, now, then)) {
    if (!is_in(accepted, d.key)) continue;
    const std::string what =
        d.key == "optimizer.group" ? ": " + changed_groups(config, d.was) : text(" ", d.was, " -> ", d.is);
    changes += text(changes.empty() ? "" : ", ", d.key, what);
  }
  return changes;
}

std::string other_changes(const Config& now, const Config& then) {
  std::string changes;
  Config after = now, before = then;
  for (const ConfigKey& key : config_keys()) {
    if (untold_keys.contains(key.full_name()) || !is_free(key)) continue;
    const std::string was = text_of(key, before), is = text_of(key, after);
    if (was != is) changes += text(changes.empty() ? "" : ", ", key.full_name(), " ", was, " -> ", is);
  }
  return changes;
}

std::string place_changes(const RunDescription& now, const RunDescription& then) {
  std::string changes;
  const auto tell = [&](const char* what, const auto& was, const auto& is) {
    if (was != is) changes += text(changes.empty() ? "" : ", ", what, " ", was, " -> ", is);
  };
  if (now.ranks > 0) tell("ranks", then.ranks, now.ranks);
  if (then.threads > 0 && now.threads > 0) tell("threads of a rank", then.threads, now.threads);
  if (!then.processor.empty())
    tell("processor", then.processor, now.processor.empty() ? std::string("one of no name") : now.processor);
  return changes;
}

}  // namespace zero

#include "zero/config/optimizer_settings.h"

#include <algorithm>

#include "base/error.h"
#include "zero/optim/optimizer_set.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

const RuleSetting* setting_of(const std::string& key) {
  for (const RuleSetting& setting : rule_settings())
    if (setting.key == key) return &setting;
  return nullptr;
}

/// Every optimizer accepts the keys that are not settings of an update rule: its name, and the types of its states.
bool knows(const OptimizerRow& row, const std::string& key) {
  const RuleSetting* const setting = setting_of(key);
  return !setting || takes(row, *setting);
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string optimizers_with(const std::string& key) {
  std::vector<std::string> names;
  for (const OptimizerRow& row : optimizer_table())
    if (knows(row, key)) names.push_back(row.name);
  return joined(names);
}

void check_state_dtype(const Config& config, const OptimizerOptions& options) {
  if (config.optimizer.state_dtype != "bf16") return;
  if (const auto why = why_no_bf16_states(options, at::kFloat))
    throw InputError(config.where("optimizer.state_dtype") + ": " + *why);
}

void check_master_dtype(const Config& config) {
  const std::string& precision = config.training.precision;
  if (config.optimizer.master_dtype != "split" || precision == "bf16") return;
  throw InputError(
      config.where("optimizer.master_dtype") +
      ": splits fp32 masters over bf16 weights, and with [training] precision = \"" + precision +
      (precision == "fp32" ? "\" the weights are the masters" : "\" no 16 bits hold the rest of a master") +
      ": leave it out, or give precision = \"bf16\"");
}

}  // namespace

bool is_read(const Config& config, const ConfigKey& key) {
  if (!has_section(config, key.section)) return false;
  if (key.section == "preference") return config.preference->reads(key.name);
  return key.section != "optimizer" || knows(optimizer_row(config.optimizer.name), key.name);
}

Config with_optimizer_defaults(Config config) {
  static_cast<RuleSettings&>(config.optimizer) = optimizer_row(config.optimizer.name).defaults;
  return config;
}

void settle_optimizer(Config& config) {
  const OptimizerRow& row = optimizer_row(config.optimizer.name);
  Config defaults = with_optimizer_defaults(config);
  for (const ConfigKey& key : config_keys()) {
    if (key.section != "optimizer" || key.name == "name") continue;
    if (!config.is_given(key.full_name())) {
      write_field(key.field(config), *read_field(key.field(defaults)));
    } else if (!knows(row, key.name)) {
      const std::string others = joined(row.settings);
      throw InputError(config.where(key.full_name()) + ": is a setting of " + optimizers_with(key.name) + "; \"" +
                       row.name + "\" knows lr and weight_decay" + (others.empty() ? "" : ", " + others));
    }
  }
  const OptimizerOptions& options = config.optimizer;
  for (const OptimizerGroup& group : options.groups)
    if (const std::string name = group_settings(options, group).optimizer; group.lr_adamw && name != "muon")
      throw InputError(where(group) + " lr_adamw: is a setting of muon, and the group's optimizer is " + name);
  check_state_dtype(config, options);
  check_master_dtype(config);
}

StateStorage state_storage_of(const Config& config) {
  return {.bf16_states = config.optimizer.state_dtype == "bf16",
          .split_master = config.optimizer.master_dtype == "split",
          .seed = std::uint64_t(config.training.seed)};
}

std::string groups_toml(const OptimizerConfig& config) {
  std::string page;
  for (const OptimizerGroup& group : config.groups) {
    page += "\n[[optimizer.group]]\n";
    OptimizerGroup copy = group;
    for (const GroupKey& key : group_keys())
      if (const std::optional<Value> value = read_field(key.field(copy)))
        page += key.name + " = " + toml_text(*value) + "\n";
  }
  return page;
}

namespace {

// ": lr 0.25 now, 0.5 then, optimizer none now, "lion" then"; empty if all agree.
std::string difference(OptimizerGroup now, OptimizerGroup then) {
  std::string text;
  for (const GroupKey& key : group_keys()) {
    const auto of = [&](OptimizerGroup& group) {
      const std::optional<Value> value = read_field(key.field(group));
      return value ? toml_text(*value) : std::string("none");
    };
    const std::string is = of(now), was = of(then);
    if (is != was) text += (text.empty() ? ": " : ", ") + key.name + " " + is + " now, " + was + " then";
  }
  return text;
}

}  // namespace

std::string groups_difference(const std::vector<OptimizerGroup>& now, const std::vector<OptimizerGroup>& then) {
  std::string all;
  for (std::size_t g = 0; g < std::max(now.size(), then.size()); ++g) {
    const std::string what = g >= then.size()  ? ": there now, not then"
                             : g >= now.size() ? ": there then, not now"
                                               : difference(now[g], then[g]);
    if (what.empty()) continue;
    const std::string place = g < now.size() && !now[g].place.empty() ? " (" + now[g].place + ")" : "";
    all += (all.empty() ? "" : "; ") + ("group " + std::to_string(g + 1)) + place + what;
  }
  return all;
}

std::string keys_of_rates(const OptimizerConfig& config) {
  const std::string keys = config.name == "prodigy" ? "optimizer.d_coef or optimizer.d0"
                           : config.name == "muon"  ? "optimizer.lr and optimizer.lr_adamw"
                                                    : "optimizer.lr";
  return keys + (config.groups.empty() ? "" : ", and the lr of groups");
}

}  // namespace zero

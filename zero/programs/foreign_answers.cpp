#include "zero/programs/foreign_answers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/programs/foreign_values.h"

namespace zero {
namespace {

const ConfigKey& key_named(const std::string& name) {
  const std::vector<ConfigKey>& keys = config_keys();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& key) { return key.full_name() == name; });
  ZERO_CHECK(found != keys.end(), name);
  return *found;
}

/// Keys with the same reason share a line.
void print_dropped(const ForeignConfig& foreign, std::ostream& out) {
  std::vector<std::pair<std::string, std::string>> lines;  // reason, keys
  for (const auto& [key, why] : foreign.dropped) {
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&reason = why](const auto& line) { return line.first == reason; });
    if (same == lines.end())
      lines.emplace_back(why, key);
    else if ((", " + same->second + ",").find(", " + key + ",") == std::string::npos)
      same->second += ", " + key;
  }
  if (!lines.empty()) out << "dropped:\n";
  for (const auto& [why, keys] : lines) out << "  " << keys << ": " << why << '\n';
}

bool has_longer_warmup(const ForeignConfig& foreign, std::int64_t steps) {
  const std::string key = "lr_scheduler.warmup_steps=";
  return steps > 0 && std::any_of(foreign.overrides.begin(), foreign.overrides.end(), [&](const std::string& setting) {
           return setting.starts_with(key) && std::atoll(setting.c_str() + key.size()) > steps;
         });
}

/// The run's steps by the command line, or by the file; 0 if they follow from epochs.
std::int64_t named_steps(const ForeignConfig& foreign, const NewRun& run) {
  if (run.steps > 0) return run.steps;
  const std::string key = "training.steps=";
  for (const std::vector<std::string>* settings : {&run.overrides, &foreign.overrides})
    for (const std::string& setting : *settings)
      if (setting.starts_with(key)) return std::atoll(setting.c_str() + key.size());
  return 0;
}

/// Why a warm-up is not taken.
std::string longer_than(std::int64_t steps) {
  return text("is longer than the run's ", counted(steps, "step"), "; a thirtieth of them counts");
}

void drop_replaced(ForeignConfig& foreign, const NewRun& run) {
  const auto drop = [&](bool given, std::initializer_list<const char*> keys, const std::string& why) {
    if (!given) return;
    for (const char* key : keys) foreign::drop(foreign, key, "", why);
  };
  const std::string given = "the command line gives another";
  for (const std::string& setting : run.overrides) foreign::drop(foreign, foreign::key_of(setting) + "=", "", given);
  const bool has_length = run.steps > 0 || run.sets("training.steps=") || run.sets("training.epochs=");
  drop(has_length, {"training.steps=", "training.epochs="}, given);
  drop(run.sets("lr_scheduler.warmup_"), {"lr_scheduler.warmup_"}, given);  // steps and a ratio contradict each other
  const std::int64_t steps = named_steps(foreign, run);
  drop(has_longer_warmup(foreign, steps), {"lr_scheduler.warmup_steps="}, longer_than(steps));
  drop(run.seq_len > 0, {"training.seq_len="}, given);
  drop(run.global_batch > 0, {"training.global_batch_size="}, given);
  drop(run.method == "full", {"lora."}, "--method full has no adapter");
  drop(run.method == "lora" || run.method == "qlora", {"lora.quantization="}, given);
  if (run.method == "lora" && !run.sets("lora.quantization=")) foreign::drop_double_quantization(foreign);
  if (takes_preferences(run))
    for (const char* key : {"data.packing", "data.train_on"})
      foreign::drop(foreign, std::string(key) + "=", "", "the data are for preferences, whose answers alone count");
  if (are_countable(files_of(run.data)) || foreign.shares.empty()) return;
  foreign::drop_shares(foreign, "the data are too large to be counted here, so the run's steps are not known: give ");
  foreign::drop_without_validation(foreign);
}

/// The rows of a step, from the file's rows for each rank.
void take_batch(const ForeignConfig& foreign, NewRun& run, const MachineRequest& machine, std::ostream& out) {
  if (foreign.rows_of_rank == 0 || run.global_batch > 0 || run.sets("training.global_batch_size=")) return;
  const std::int64_t holders = std::max<std::int64_t>(1, ranks_of(machine) / foreign.ranks_of_row);
  run.global_batch = foreign.rows_of_rank * holders;
  out << "global batch: " << foreign.rows_of_rank << " rows a rank x " << holders << " = " << run.global_batch
      << " rows\n";
}

std::string place_of(const ForeignConfig& foreign, const std::string& setting) {
  const auto name = foreign.names.find(foreign::key_of(setting));
  return foreign.source + ": " + (name == foreign.names.end() ? "the default of " + foreign.tool : name->second) +
         " (" + setting + ")";
}

}  // namespace

void take_answers(ForeignConfig& foreign, NewRun& run, std::ostream& out) {
  const auto take = [&](const std::string& name, const std::string& value, std::string& answer, const char* flag,
                        const auto& check) {
    if (value.empty()) return;
    if (!answer.empty()) {
      foreign.dropped.emplace_back(name, value + ": the command line names another");
      return;
    }
    try {
      check(value);
      answer = value;
      out << "  " << name << ": as " << flag << ' ' << value << '\n';
    } catch (const InputError& error) {
      out << "  " << name << ": " << error.what() << '\n';
    }
  };
  out << foreign.source << " is a configuration of " << foreign.tool << '\n';
  take("base_model", foreign.model, run.model, "--model", check_model);
  take("datasets", foreign.data, run.data, "--data", check_data);
  take("output_dir", foreign.output_dir, run.output_dir, "--output-dir", [](const std::string&) {});
}

void take_settings(ForeignConfig& foreign, NewRun& run, const MachineRequest& machine, std::ostream& out) {
  drop_replaced(foreign, run);
  if (run.method.empty()) run.method = foreign.lora ? "lora" : "full";
  run.packs = foreign.packs;
  const std::size_t keys = foreign.overrides.size();
  out << counted(std::int64_t(keys), "key") << (keys == 1 ? " is taken\n" : " are taken\n");
  for (const std::string& setting : foreign.overrides) {
    out << "  " << setting << '\n';
    run.places[setting] = place_of(foreign, setting);
  }
  print_dropped(foreign, out);
  take_batch(foreign, run, machine, out);
  std::vector<std::string> settings = foreign.overrides;
  for (const ForeignShare& share : foreign.shares) {
    settings.push_back(share.key + "=1");  // until the data are counted
    run.places[settings.back()] = foreign.source + ": " + share.name;
  }
  run.overrides.insert(run.overrides.begin(), settings.begin(), settings.end());
}

void take_length(const ForeignConfig& foreign, const std::optional<RunLength>& length, Config& config,
                 std::ostream& out) {
  if (!length || foreign.source.empty()) return;
  for (const ForeignShare& share : foreign.shares) {
    const double part = share.share > 0 ? share.share : 1 / (share.times * std::max(length->epochs, 1e-9));
    const std::int64_t steps = foreign::steps_of_share(part, length->steps);
    write_field(key_named(share.key).field(config), Value(steps));
    out << share.name << ": " << share.key << '=' << steps << ", of " << counted(length->steps, "step") << '\n';
  }
  const std::string key = "lr_scheduler.warmup_steps", place = config.where(key);
  if (config.lr_scheduler.warmup_steps <= length->steps || !place.starts_with(foreign.source + ": ")) return;
  out << place << ": " << longer_than(length->steps) << '\n';
  config.lr_scheduler.warmup_steps = std::max<std::int64_t>(1, length->steps / 30);
}

void tell_open_keys(const ForeignConfig& foreign, const Config& config, std::ostream& out) {
  if (!foreign.open.empty()) out << "\"auto\" is now:\n";
  Config values = config;
  for (const auto& [name, key] : foreign.open) {
    const bool is_ratio = key == "lr_scheduler.warmup_steps" && config.lr_scheduler.warmup_ratio > 0;
    const ConfigKey& own = key_named(is_ratio ? "lr_scheduler.warmup_ratio" : key);
    const std::optional<Value> value = read_field(own.field(values));
    out << "  " << name << ": " << own.full_name() << (value ? "=" + toml_text(*value) : " is open") << '\n';
  }
}

}  // namespace zero

#include "zero/estimate/legal_layout.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "zero/config/config_rules.h"
#include "zero/config/run_model.h"
#include "zero/estimate/key_values.h"
#include "zero/estimate/memory_plan.h"
#include "zero/estimate/meta_rank.h"

namespace zero {
namespace {

/// Another value of one key.
struct LayoutChange {
  std::string key;
  Value value;
  double distance = 0;
};

std::int64_t ranks_of_a_copy(const Config& config) {
  return config.parallel.tensor * config.parallel.context * config.parallel.pipeline;
}

/// Throws InputError for a layout that breaks a rule of the configuration.
void check_rules(const Config& config, const ModelConfig& model, const LayoutJob& job) {
  check_contradictions(config);
  validate_for(config, job.ranks);
  validate_for_model(config, model);
  if (job.on_gpu) validate_for_gpu(config);
}

/// Lists the values that the keys of a layout may have instead, nearest first.
class LayoutChanges {
 public:
  LayoutChanges(const Config& config, const LayoutJob& job) : config_(config), job_(job) {}

  std::vector<LayoutChange> make() {
    add_axis("parallel.tensor", config_.parallel.tensor);
    add_axis("parallel.context", config_.parallel.context);
    add_axis("parallel.pipeline", config_.parallel.pipeline);
    add_schedule();
    add_zero();
    add_batch();
    if (config_.activation_checkpoint.mlp_tokens > 0) add("activation_checkpoint.mlp_tokens", std::int64_t{0}, 1.05);
    if (config_.offload.activations != "none") add("activation_checkpoint.mode", std::string("full"), 1.05);
    if (config_.job.over_ranks()) add("job.reproducible", std::string("none"), 8);
    if (config_.lora && config_.lora->double_quantization) add("lora.double_quantization", false, 1.5);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const LayoutChange& a, const LayoutChange& b) { return a.distance < b.distance; });
    return std::move(found_);
  }

 private:
  void add(const std::string& name, const Value& value, double distance) {
    const bool fixed = name == "training.global_batch_size" || name.starts_with("lora.");
    if (job_.resumed && fixed) return;
    for (const ConfigKey& key : config_keys())
      if (key.full_name() == name && key.rule.accepts(value)) found_.push_back({name, value, distance});
  }

  void add_axis(const std::string& name, std::int64_t asked) {
    for (std::int64_t value = 1; value <= std::min<std::int64_t>(job_.ranks, 64); ++value) {
      if (job_.ranks % value != 0 || value == asked) continue;
      add(name, value, value < asked ? double(asked) / double(value) : 1.5 * double(value) / double(asked));
    }
  }

  void add_schedule() {
    if (config_.parallel.schedule != "1f1b") add("parallel.schedule", std::string("1f1b"), 1);
    if (config_.parallel.schedule != "interleaved") return;
    for (std::int64_t chunks = std::min<std::int64_t>(config_.parallel.chunks, 64) - 1; chunks >= 2; --chunks)
      add("parallel.chunks", chunks, double(config_.parallel.chunks) / double(chunks));
  }

  void add_zero() {
    const std::int64_t asked = config_.zero.stage;
    for (std::int64_t stage = 3; stage >= 0; --stage)
      if (stage != asked) add("zero.stage", stage, 1.2 + 0.1 * double(std::abs(asked - stage)));
    if (asked == 3 && config_.parallel.pipeline > 1 && !config_.parallel.regather) add("parallel.regather", true, 1.6);
    if (config_.zero.shard_degree > 0) add("zero.shard_degree", std::int64_t{0}, 1.1);
  }

  /// Adds global batches that the ranks divide, and micro-batches that divide the global batch.
  void add_batch() {
    const std::int64_t copies = job_.ranks / ranks_of_a_copy(config_), local = config_.micro_batch_rows();
    if (job_.ranks % ranks_of_a_copy(config_) != 0) return;
    const std::string global_key = "training.global_batch_size",
                      local_key = config_.job.over_ranks() ? "job.reproducible_rows" : "training.local_batch_size";
    const std::int64_t global = config_.training.global_batch_size.value_or(local * copies);
    for (const std::int64_t unit : {local * copies, local * copies * config_.parallel.pipeline})
      for (const std::int64_t value : {global / unit * unit, global / unit * unit + unit})
        if (value != config_.training.global_batch_size)
          add(global_key, value, 4 + double(std::abs(value - global)) / double(global));
    if (!config_.training.global_batch_size) return;  // it follows the micro-batch
    for (std::int64_t rows = 1; rows <= std::min<std::int64_t>(global / copies, 64); ++rows)
      if (global % (rows * copies) == 0 && rows != local)
        add(local_key, rows, rows < local ? double(local) / double(rows) : 2 * double(rows) / double(local));
  }

  const Config& config_;
  const LayoutJob& job_;
  std::vector<LayoutChange> found_;
};

/// Looks for legal layouts near an illegal one.
class NearLayouts {
 public:
  NearLayouts(const Config& config, const ModelConfig& model, const LayoutJob& job)
      : config_(config), model_(model), job_(job), changes_(LayoutChanges(config, job).make()) {}

  std::vector<std::string> find() {
    std::vector<std::string> found = of_one_key();
    if (found.empty()) found = of_two_keys();
    for (const std::string& ranks : of_other_ranks()) found.push_back(ranks);
    return found;
  }

 private:
  std::vector<std::string> of_one_key() {
    constexpr std::size_t most = 3;
    std::vector<std::string> found;
    std::set<std::string> keys;
    for (const LayoutChange& change : changes_) {
      const KeyValues values{{change.key, change.value}};
      if (found.size() == most || keys.contains(change.key) || !is_legal(with(values), job_)) continue;
      keys.insert(change.key);
      found.push_back(as_arguments(values));
    }
    return found;
  }

  std::vector<std::string> of_two_keys() {
    for (const LayoutChange& first : changes_) {
      const Config changed = with({{first.key, first.value}});
      for (const LayoutChange& second : LayoutChanges(changed, job_).make()) {
        const KeyValues values{{first.key, first.value}, {second.key, second.value}};
        if (second.key != first.key && is_legal(with(values), job_)) return {as_arguments(values)};
      }
    }
    return {};
  }

  /// Returns the nearest numbers of ranks, fewer and more, that divide what these ranks do not divide. Names no more
  /// ranks on GPUs, since there may be no more GPUs.
  std::vector<std::string> of_other_ranks() {
    constexpr int tries = 64;
    const int most_ranks = job_.on_gpu ? job_.ranks : 1'000'000;  // as --ranks
    std::vector<std::string> found;
    if (divide(job_.ranks)) return found;
    const std::int64_t together = ranks_of_a_copy(config_), below = job_.ranks / together * together;
    for (const std::int64_t step : {-together, together})
      for (std::int64_t ranks = step < 0 && below < job_.ranks ? below : below + step, tried = 0;
           ranks >= job_.least_ranks && ranks <= most_ranks && tried < tries; ranks += step, ++tried) {
        if (ranks % job_.nodes != 0 || !divide(int(ranks))) continue;
        LayoutJob other = job_;
        other.ranks = int(ranks);
        other.on_gpu |= config_.training.device != "cpu" && at::hasCUDA();  // fewer ranks may find enough GPUs
        if (is_legal(config_, other)) found.push_back(words_of(ranks));
        break;
      }
    return found;
  }

  std::string words_of(std::int64_t ranks) const {
    return job_.ranks_option.empty() ? counted(ranks, "rank") : text(job_.ranks_option, " ", ranks / job_.nodes);
  }

  bool divide(int ranks) const {
    try {
      validate_for(config_, ranks);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  Config with(const KeyValues& values) const {
    Config other = config_;
    set_keys(other, values);
    return other;
  }

  /// False also for a layout on which the engine fails, and after so many engines that the user would wait long.
  bool is_legal(const Config& config, const LayoutJob& job) {
    constexpr int most_engines = 40;
    try {
      check_rules(config, model_, job);
      return ++engines_ <= most_engines && why_illegal(config, model_, job).empty();
    } catch (const std::exception&) {
      return false;
    }
  }

  const Config& config_;
  const ModelConfig& model_;
  const LayoutJob& job_;
  std::vector<LayoutChange> changes_;
  int engines_ = 0;
};

}  // namespace

std::string LayoutVerdict::remedies() const {
  std::string words;
  for (const std::string& change : legal) words += (words.empty() ? "" : ", or ") + change;
  return words;
}

std::string why_illegal(const Config& config, const ModelConfig& model, const LayoutJob& job) {
  try {
    check_rules(config, model, job);
    const BatchArithmetic batch = BatchArithmetic::of(config, job.ranks);
    const RunModel run = make_run_model(config, model, /*with_weights=*/false, {batch.mesh.tensor, 0});
    const MemoryWork work = memory_work_of(config, batch);
    const MetaRank rank(chain_of(run.own), work.engine, work);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

LayoutVerdict judge_layout(const Config& config, const ModelConfig& model, const LayoutJob& job) {
  Config given = config;
  if (!config.is_given("training.global_batch_size")) given.training.global_batch_size.reset();
  LayoutVerdict verdict{why_illegal(given, model, job), {}};
  // Without a global batch, a resumed run would have the checkpoint's only by chance.
  const bool batch_is_open = job.resumed && !given.training.global_batch_size;
  if (!verdict.is_legal() && !batch_is_open) verdict.legal = NearLayouts(given, model, job).find();
  return verdict;
}

void check_layout(const std::function<void()>& check, const std::function<LayoutVerdict()>& judge) {
  try {
    check();
  } catch (const InputError& error) {
    std::string remedies;
    try {
      remedies = judge().remedies();
    } catch (const InputError&) {  // the model or the device is of no use, which another message says
    }
    if (remedies.empty()) throw;
    const std::string why = error.what();
    throw InputError(why + (why.find('\n') == why.npos ? "; " : "\n  ") + "legal here: " + remedies);
  }
}

}  // namespace zero

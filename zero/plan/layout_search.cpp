#include "zero/plan/layout_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/config/setup.h"
#include "zero/estimate/legal_layout.h"
#include "zero/estimate/nearest_fit.h"

namespace zero {
namespace {

/// True if the rows of a step can be divided. BatchArithmetic checks this too, with a message that takes time.
bool divides(const Config& config, int ranks) {
  const ParallelConfig& parallel = config.parallel;
  const std::int64_t model = parallel.tensor * parallel.context * parallel.pipeline;
  return ranks % model == 0 &&
         *config.training.global_batch_size % (config.training.local_batch_size * (ranks / model)) == 0;
}

/// A run makes this folder, if the configuration names no other.
void complete_places(Config& config) {
  if ((config.offload.optimizer == "nvme" || config.offload.parameters == "nvme") && config.offload.nvme_dir.empty())
    config.offload.nvme_dir = offload_directory(config);
}

/// The settings that follow from others.
void complete(Config& config) {
  if (config.parallel.pipeline > 1 && config.zero.stage == 3) config.parallel.regather = true;
  complete_places(config);
}

std::string names_of(const LayoutSettings& settings, const std::function<bool(const std::string& name)>& wanted) {
  std::string names;
  for (const auto& [key, value] : settings)
    if (wanted(key->full_name())) names += key->full_name() + "=" + toml_text(value) + " ";
  return names;
}

/// A step's time in steps of 0.1 %: layouts in one step are equally fast.
std::int64_t speed_of(const StepTime& time) { return std::llround(1000 * std::log(time.seconds())); }

/// Everything in which two layouts of the table must differ.
std::string family_of(const LayoutSettings& settings) {
  return names_of(settings, [](const std::string& name) {
    return !name.starts_with("activation_checkpoint") && name != "training.local_batch_size" &&
           name != "offload.activations";
  });
}

/// Everything but the micro-batch.
std::string rest_of(const LayoutSettings& settings) {
  return names_of(settings, [](const std::string& name) { return name != "training.local_batch_size"; });
}

/// The settings that change a micro-batch's memory and computation.
std::string micro_batch_of(const Config& config, bool keeps_inputs) {
  return text(config.training.local_batch_size, " ", config.parallel.tensor, " ", config.parallel.context, " ",
              config.activation_checkpoint.mode, " ", config.activation_checkpoint.every, " ", keeps_inputs, " ",
              config.offload.activations, " ", config.lora ? config.lora->quantization : "");
}

}  // namespace

std::string PlannedLayout::describe() const {
  std::vector<std::string> words{text("stage ", config.zero.stage)};
  const auto add = [&](bool wanted, const std::string& said) {
    if (wanted) words.push_back(said);
  };
  add(batch.mesh.replicate > 1, text("shard ", batch.mesh.shard, " x ", batch.mesh.replicate));
  add(batch.mesh.tensor > 1, text("tensor ", batch.mesh.tensor));
  add(batch.mesh.context > 1, text("context ", batch.mesh.context));
  add(batch.mesh.pipeline > 1, text("pipeline ", batch.mesh.pipeline));
  add(config.lora && config.lora->quantization != "none", config.lora ? config.lora->quantization + " base" : "");
  const std::string& mode = config.activation_checkpoint.mode;
  add(mode != "none",
      mode == "selective" ? text("recompute 1 in ", config.activation_checkpoint.every) : "recompute " + mode);
  add(memory.keeps_inputs, "keep");
  add(config.offload.optimizer != "none", "states on " + config.offload.optimizer);
  add(config.offload.parameters != "none", "weights on " + config.offload.parameters);
  add(config.offload.activations != "none", "activations on " + config.offload.activations);
  std::string all;
  for (const std::string& one : words) all += (all.empty() ? "" : ", ") + one;
  return all;
}

bool PlannedLayout::is_same(const PlannedLayout& other) const {
  return batch.local_batch_size == other.batch.local_batch_size && describe() == other.describe();
}

LayoutSearch::OwnModel& LayoutSearch::model_for(const Config& config, const BatchArithmetic& batch) {
  const std::string base = config.lora ? config.lora->quantization : "";
  OwnModel& own = models_[{batch.mesh.tensor, base}];
  if (!own.planner) {
    own.run = make_run_model(config, model_, /*with_weights=*/false, {batch.mesh.tensor, 0});
    own.planner = std::make_unique<MemoryPlanner>(own.run.own, /*sizes_checkpoints=*/false);
  }
  return own;
}

Config LayoutSearch::config_with(const LayoutSettings& settings) const {
  Config config = config_;
  for (const auto& [key, value] : settings) write_field(key->field(config), value);
  complete(config);
  return config;
}

bool LayoutSearch::assumes_kept(const Config& config) const {
  return config.activation_checkpoint.keep == "on" || (machine_.gpu && config.activation_checkpoint.keep == "auto");
}

StepTime LayoutSearch::time_of(const Config& config, const BatchArithmetic& batch, bool keeps_inputs) {
  const Model& model = model_for(config, batch).run.own;
  const auto [work, is_new] = works_.try_emplace(micro_batch_of(config, keeps_inputs));
  if (is_new)
    work->second = work_of_units(
        model, {config, batch, precision_of(config, batch).compute, keeps_inputs, machine_.gpu}, *machine_.kernels);
  return simulate_step(model, work->second, config, batch, machine_);
}

class LayoutSearch::Walk {
 public:
  Walk(LayoutSearch& search, std::vector<LayoutChoice> choices) : search_(search), choices_(std::move(choices)) {}

  std::vector<Candidate> all() {
    Config start = search_.config_, usual;
    for (const LayoutChoice& choice : choices_)
      if (const auto value = read_field(choice.key->field(usual))) write_field(choice.key->field(start), *value);
    extend(start, 0);
    return std::move(found_);
  }

 private:
  void extend(const Config& config, std::size_t level) {
    if (level == choices_.size()) {
      add(config);
      return;
    }
    const LayoutChoice& choice = choices_[level];
    for (const Value& value : choice.values) {
      Config other = config;
      write_field(choice.key->field(other), value);
      if (!is_sensible(other)) continue;
      settings_.emplace_back(choice.key, value);
      extend(other, level + 1);
      settings_.pop_back();
    }
  }

  void add(const Config& layout) {
    if (!divides(layout, search_.machine_.ranks())) return;
    Config config = layout;
    complete(config);
    try {
      const BatchArithmetic batch = BatchArithmetic::of(config, search_.machine_.ranks());
      const bool divides_nothing = batch.mesh.shard * batch.mesh.context == 1;
      if (divides_nothing && config.zero.stage != 1 && config.offload.parameters == "none" && tries("zero.stage"))
        return;  // as stage 1
      if (config.zero.shard_degree != 0 && batch.mesh.replicate == 1 && tries("zero.shard_degree"))
        return;  // as shard_degree 0
      found_.push_back({settings_, search_.time_of(config, batch, search_.assumes_kept(config))});
    } catch (const InputError& error) {  // not a layout of this number of ranks
      search_.why_none_ = error.what();
    }
  }

  bool tries(const std::string& key) const {
    return std::ranges::any_of(choices_, [&](const LayoutChoice& choice) { return choice.key->full_name() == key; });
  }

  LayoutSearch& search_;
  std::vector<LayoutChoice> choices_;
  LayoutSettings settings_;
  std::vector<Candidate> found_;
};

bool LayoutSearch::is_as_fast(const Candidate& candidate, const PlannedLayout& found) const {
  return changes_base(candidate.settings) == changes_base(found.settings) &&
         speed_of(candidate.time) <= speed_of(found.time);
}

bool LayoutSearch::changes_base(const LayoutSettings& settings) const {
  return std::any_of(settings.begin(), settings.end(), [&](const auto& setting) {
    return setting.first->full_name() == "lora.quantization" &&
           toml_text(setting.second) != toml_text(config_.lora->quantization);
  });
}

void LayoutSearch::sort_by_rank(std::vector<Candidate>& layouts) const {
  const auto rank_of = [&](const Candidate& layout) {
    return std::pair(changes_base(layout.settings), speed_of(layout.time));
  };
  std::stable_sort(layouts.begin(), layouts.end(),
                   [&](const Candidate& a, const Candidate& b) { return rank_of(a) < rank_of(b); });
}

void LayoutSearch::sort_by_rank(std::vector<PlannedLayout>& layouts) const {
  const auto rank_of = [&](const PlannedLayout& layout) {
    return std::tuple(changes_base(layout.settings), speed_of(layout.time), layout.rank_bytes(machine_));
  };
  std::stable_sort(layouts.begin(), layouts.end(),
                   [&](const PlannedLayout& a, const PlannedLayout& b) { return rank_of(a) < rank_of(b); });
}

std::vector<LayoutSearch::Candidate> LayoutSearch::candidates(const SearchOptions& options) {
  std::vector<Candidate> found = Walk(*this, choices_of(config_, model_, machine_, options.any_batch)).all();
  sort_by_rank(found);
  return found;
}

bool LayoutSearch::may_fit(const Config& config, const BatchArithmetic& batch) {
  if (config.offload.optimizer != "none") return true;
  double trained = 0;
  for (const auto& unit : model_for(config, batch).run.own.units)
    for (const Parameter& parameter : unit->parameters())
      if (parameter.trainable) trained += double(parameter.numel());
  const MeshShape& mesh = batch.mesh;
  const double least =
      paper_bytes(trained / mesh.pipeline, 0, engine_options_of(config, batch), mesh.shard * mesh.context).sum();
  const NodeBudget& budget = machine_.budget;
  if (budget.device_free) return least < double(*budget.device_free);
  return budget.memory.available < 0 || least * budget.ranks_here < double(budget.memory.available);
}

MemoryEstimate LayoutSearch::memory_of(const Config& config, const BatchArithmetic& batch) {
  MemoryPlanner& planner = *model_for(config, batch).planner;
  return estimate_stage(config, batch, planner, machine_.budget, int(config.zero.stage));
}

PlannedLayout LayoutSearch::given_layout() {
  Config config = config_;
  complete_places(config);
  const BatchArithmetic batch = BatchArithmetic::of(config, machine_.ranks());
  const std::string why = why_illegal(config, model_, {.ranks = machine_.ranks(), .on_gpu = machine_.gpu});
  if (!why.empty()) throw InputError(why);
  MemoryEstimate memory = memory_of(config, batch);
  StepTime time = time_of(config, batch, memory.keeps_inputs);
  return {{}, config, batch, time, std::move(memory)};
}

void LayoutSearch::add_given(SearchResult& result) {
  try {
    result.given = given_layout();
  } catch (const InputError& error) {
    result.why_not_given = error.what();
  }
}

SearchResult LayoutSearch::find(const SearchOptions& options) {
  SearchResult result;
  if (options.only_given) {
    const LayoutJob job{.ranks = machine_.ranks(),
                        .on_gpu = machine_.gpu,
                        .ranks_option = machine_.gpu ? "--gpus" : "--ranks-per-node",
                        .nodes = machine_.nodes};
    check_layout([&] { result.best = {given_layout()}; }, [&] { return judge_layout(config_, model_, job); });
    if (machine_.timings && machine_.timings->confirm()) {
      works_.clear();
      result.best = {given_layout()};
    }
    result.possible = 1;
    return result;
  }
  std::vector<Candidate> all = candidates(options);
  if (machine_.timings && machine_.timings->confirm()) {
    works_.clear();  // their seconds are from before
    all = candidates(options);
  }
  result.possible = int(all.size());
  std::set<std::string> families, hopeless;       // rows of the table; micro-batches whose activations alone do not fit
  std::map<std::string, std::int64_t> too_large;  // a layout that does not fit rules out a larger micro-batch
  for (Candidate& candidate : all) {
    // Equally fast layouts are compared by their memory.
    if (int(result.best.size()) >= options.best && !is_as_fast(candidate, result.best.back())) break;
    const std::string family = family_of(candidate.settings), rest = rest_of(candidate.settings);
    if (families.count(family)) continue;
    const Config config = config_with(candidate.settings);
    const BatchArithmetic batch = BatchArithmetic::of(config, machine_.ranks());
    const std::string micro_batch = micro_batch_of(config, assumes_kept(config));
    const auto known = too_large.find(rest);
    if ((known != too_large.end() && known->second <= batch.local_batch_size) || hopeless.count(micro_batch) ||
        !may_fit(config, batch)) {
      ++result.too_large;
      continue;
    }
    const std::string why = why_illegal(config, model_, {.ranks = machine_.ranks(), .on_gpu = machine_.gpu});
    if (!why.empty()) {
      ++result.illegal;
      why_none_ = why;
      continue;
    }
    MemoryEstimate memory = memory_of(config, batch);
    if (!memory.fits) {
      ++result.too_large;
      too_large[rest] = batch.local_batch_size;
      const NodeBudget& budget = machine_.budget;
      const std::int64_t room =
          budget.device_free ? *budget.device_free : budget.memory.available / std::max(1, budget.ranks_here);
      if (batch.mesh.pipeline == 1 && room >= 0 && memory.plan.activations.peak() > room) hopeless.insert(micro_batch);
      continue;
    }
    if (memory.keeps_inputs != assumes_kept(config)) candidate.time = time_of(config, batch, memory.keeps_inputs);
    families.insert(family);
    result.best.push_back({std::move(candidate.settings), config, batch, candidate.time, std::move(memory)});
  }
  sort_by_rank(result.best);
  if (int(result.best.size()) > options.best) result.best.resize(std::size_t(options.best));
  if (result.best.empty() && result.too_large == 0) refuse_all(options);
  if (options.shows_given) add_given(result);
  return result;
}

void LayoutSearch::refuse_all(const SearchOptions& options) const {
  Config config = config_;
  if (options.any_batch && !config.overridden.contains("training.local_batch_size"))
    config.training.local_batch_size = 1;         // the least that the search tries
  BatchArithmetic::of(config, machine_.ranks());  // names the batch or the axis that does not divide
  if (!why_none_.empty()) throw InputError(why_none_);
  throw InputError("no layout agrees with all settings that are given: leave some to the search");
}

std::int64_t LayoutSearch::largest_batch(const PlannedLayout& layout) {
  const auto fits = [&](std::int64_t rows) {
    Config config = layout.config;
    config.training.local_batch_size = rows;
    config.training.global_batch_size =
        rows * layout.batch.ranks * (layout.batch.mesh.pipeline > 1 ? layout.batch.accumulation : 1);
    return memory_of(config, BatchArithmetic::of(config, machine_.ranks())).fits;
  };
  std::int64_t least = 0, most = 1;
  while (most <= (1 << 20) && fits(most)) {
    least = most;
    most *= 2;
  }
  while (most - least > 1) {
    const std::int64_t middle = (least + most) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

}  // namespace zero

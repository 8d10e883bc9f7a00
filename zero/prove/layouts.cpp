#include "zero/prove/layouts.h"

#include <ATen/Context.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "models/decoder/decoder.h"
#include "models/model_config.h"
#include "models/ops/kernels/tile_matrix.h"
#include "zero/config/setup.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

constexpr std::int64_t least_local_cap = 4;  // micro-batch rows for which any machine should have memory

std::int64_t largest_divisor(std::int64_t number, std::int64_t most) {
  std::int64_t d = std::max<std::int64_t>(1, std::min(number, most));
  while (number % d != 0) --d;
  return d;
}

/// Returns true if the optimizer sums over whole tensors, since other shards then mean another order of summation.
bool sums(const std::string& optimizer) {
  const OptimizerRow& row = optimizer_row(optimizer);
  const std::unique_ptr<Optimizer> made = row.make(row.defaults);
  return made->run_sums() > 0 || made->sums({8, 8}) > 0;
}

bool sums_over_tensors(const OptimizerConfig& config) {
  return sums(config.name) || std::any_of(config.groups.begin(), config.groups.end(),
                                          [](const OptimizerGroup& g) { return g.optimizer && sums(*g.optimizer); });
}

/// The model's configuration. None if it cannot be read; the first run then reports the error and its key.
std::optional<ModelConfig> readable_model(const Config& config) {
  try {
    return model_config_of(config);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// A CPU without AMX multiplies fp32 numbers exactly, whatever the precision of products.
bool is_below_fp32(const TrainingConfig& training) {
  if (training.precision != "fp32") return true;
  const bool on_gpu = training.device == "cuda" || (training.device == "auto" && at::hasCUDA());
  return training.matmul_precision != "highest" && (on_gpu || kernels::has_tile_products());
}

/// Builds the list.
class Layouts {
 public:
  Layouts(const Config& config, const LayoutLimits& limits)
      : config_(config),
        limits_(limits),
        global_(global_batch_of(config)),
        sums_(sums_over_tensors(config.optimizer)),
        coarse_(is_below_fp32(config.training)) {
    for (int ranks = 2; ranks <= limits.ranks; ++ranks)
      if (can_be(ranks)) {
        if (few_ == 0) few_ = ranks;
        many_ = ranks;
      }
  }

  std::vector<Layout> make() {
    one_rank();
    if (few_ > 0) {
      stages();
      accumulating();
      places();
      more_ranks();
      resumed();
      strict();
    }
    if (limits_.ranks >= 2) axes();
    if (all_.size() < 3 || (few_ == 0 && limits_.ranks > 1))
      throw InputError(text(
          config_.where("training.global_batch_size"), ": ", global_, global_ == 1 ? " sequence" : " sequences",
          " a step cannot be computed in other ways on up to ", limits_.ranks, limits_.ranks == 1 ? " rank" : " ranks",
          "; ask for --set training.global_batch_size=", 4 * config_.micro_batch_rows()));
    if (config_.job.over_ranks()) same_bits_everywhere();
    return std::move(all_);
  }

 private:
  static void set_exact(Layout& layout) {
    layout.precision = "fp32";
    layout.products = "highest";
  }
  /// Returns true if this number of ranks divides the step's sequences. Three ranks are tried too.
  bool can_be(int ranks) const {
    if (!std::has_single_bit(unsigned(ranks)) && ranks != 3) return false;
    return global_ % (ranks * (config_.job.over_ranks() ? config_.job.reproducible_rows : 1)) == 0;
  }
  std::int64_t cap() const { return std::max(config_.training.local_batch_size, least_local_cap); }
  /// Rows per micro-batch with as few micro-batches as memory allows.
  std::int64_t at_once(int ranks) const { return largest_divisor(global_ / ranks, cap()); }
  /// Rows per micro-batch with more micro-batches; the same number if impossible.
  std::int64_t in_parts(int ranks) const { return largest_divisor(global_ / ranks, at_once(ranks) - 1); }
  bool splits(int ranks) const { return global_ / ranks > 1; }
  bool in_one(int ranks) const { return at_once(ranks) * ranks == global_; }

  Layout& add(const std::string& name, int ranks, std::int64_t stage, std::int64_t local) {
    Layout layout;
    layout.name = name;
    layout.ranks = ranks;
    layout.stage = stage;
    layout.local_batch_size = local;
    layout.micro_batch_rows = config_.job.over_ranks() ? config_.job.reproducible_rows : local;
    layout.precision = config_.training.precision;
    if (coarse_) layout.products = config_.training.matmul_precision;
    all_.push_back(layout);
    return all_.back();
  }

  void one_rank() {
    const std::int64_t local = largest_divisor(global_, config_.training.local_batch_size);
    add("reference", 1, 0, local);
    Layout& probe = add("probe", 1, 0, local);
    set_exact(probe);
    if (!coarse_) probe.precision = "bf16";
    probe.is_probe = true;
    const std::int64_t other = local > 1 ? largest_divisor(global_, local - 1) : at_once(1);
    if (other != local) add("micro-batches", 1, 0, other);
    if (limits_.full) add("repeated", 1, 0, local).same_as = "reference";
  }

  // Stages that sum the same numbers in the same order give the same bits.
  void stages() {
    const std::int64_t local = at_once(few_);
    const std::string whole = sums_ ? "" : "stage 0", divided = sums_ ? "stage 1" : "stage 0";
    add("stage 0", few_, 0, local);
    add("stage 1", few_, 1, local).same_as = whole;
    add("stage 2", few_, 2, local).same_as = in_one(few_) ? divided : "";
    add("stage 3", few_, 3, local).same_as = in_one(few_) ? divided : "stage 2";
  }

  void accumulating() {
    if (!splits(few_) || in_parts(few_) == at_once(few_) || config_.job.over_ranks()) return;
    add("stage 1, micro-batches", few_, 1, in_parts(few_));
    add("stage 2, micro-batches", few_, 2, in_parts(few_));
    add("stage 3, micro-batches", few_, 3, in_parts(few_)).same_as = "stage 2, micro-batches";
  }

  Layout& like_stage_3(const std::string& name, std::vector<std::string> others) {
    Layout& layout = add(name, few_, 3, at_once(few_));
    layout.same_as = "stage 3";
    layout.others = std::move(others);
    return layout;
  }

  void places() {
    Layout& disk = like_stage_3("states on disk", {"offload.optimizer=nvme", "offload.parameters=nvme"});
    if (sums_) disk.same_as = "";  // chunk by chunk
    like_stage_3("states in host memory", {"offload.optimizer=cpu", "offload.parameters=cpu"});
    like_stage_3("recompute", {"activation_checkpoint.mode=full"});
    like_stage_3("messages", {"comm.shared_memory=off"});
    if (config_.job.over_ranks()) like_stage_3("more threads", {}).more_threads = true;
    if (!limits_.full) return;
    like_stage_3("recompute attention", {"activation_checkpoint.mode=attention"});
    like_stage_3("recompute some blocks", {"activation_checkpoint.mode=selective"});
    like_stage_3("inputs kept", {"activation_checkpoint.keep=on"});
    like_stage_3("inputs in host memory", {"activation_checkpoint.mode=full", "offload.activations=cpu"});
    const std::int64_t tile = config_.row_tokens() / 2 + 1;  // ragged
    if (!config_.job.over_ranks())
      like_stage_3("MLP by tiles", {text("activation_checkpoint.mlp_tokens=", tile)}).same_as = "";
    if (config_.lora) like_stage_3("frozen weights kept", {"zero.frozen=keep"});
    Layout& stage_1 = add("stage 1, states on disk", few_, 1, at_once(few_));
    if (!sums_) stage_1.same_as = "stage 1";
    stage_1.others = {"offload.optimizer=nvme"};
  }

  void more_ranks() {
    if (many_ > few_) add(text("stage 3 on ", many_, " ranks"), many_, 3, at_once(many_));
    if (config_.job.over_ranks() && many_ == 3) return;  // replicas of three sum in another order
    Layout& hybrid = add("hybrid", many_, 3, at_once(many_));
    hybrid.shard_degree = many_ % 2 == 0 ? many_ / 2 : 1;
    if (!limits_.full) return;
    if (many_ > few_) add(text("stage 2 on ", many_, " ranks"), many_, 2, at_once(many_));
    Layout& replicas = add("hybrid, stage 1", many_, 1, at_once(many_));
    replicas.shard_degree = hybrid.shard_degree;
  }

  Layout& add_group(const std::string& name, int rows, std::int64_t stage, int tensor, int context) {
    Layout& layout = add(name, rows, stage, at_once(rows));
    layout.ranks = rows * tensor * context;
    layout.tensor = tensor;
    layout.context = context;
    return layout;
  }

  /// Adds two pipeline stages, with several micro-batches if the step's sequences can be divided.
  Layout& add_pipeline(const std::string& name, int rows, std::int64_t stage) {
    Layout& layout = add(name, rows, stage, in_parts(rows));
    layout.ranks = 2 * rows;
    layout.pipeline = 2;
    return layout;
  }

  // The ranks of these axes read the same rows.
  void axes() {
    const std::optional<ModelConfig> known = readable_model(config_);
    if (!known) return;
    const ModelConfig& model = *known;
    if (why_not_swapped(model, 1, 2).empty() && !config_.job.over_ranks()) add_group("context 2", 1, 2, 1, 2);
    if (model.num_hidden_layers >= 2) {
      add_pipeline("pipeline 2", 1, 0);
      if (few_ == 2 && limits_.ranks >= 4) add_pipeline("pipeline 2 of 4 ranks", 2, 2);
      if (few_ > 0) add_pipeline("resumed with pipeline 2", 1, 1).begins_as = "stage 3";
    }
    if (!why_not_cut(model, 2).empty() || config_.job.over_ranks()) return;
    // Partial products are rounded before they are summed. In 16 bits that is more rounding than the probe measures.
    const std::string fp32 = coarse_ ? "fp32, " : "";
    const auto add_sliced = [&](const std::string& name, int rows, std::int64_t stage) -> Layout& {
      Layout& layout = add_group(fp32 + name, rows, stage, 2, 1);
      set_exact(layout);
      return layout;
    };
    add_sliced("tensor 2", 1, 1);
    if (few_ == 2 && limits_.ranks >= 4) add_sliced("tensor 2 of 4 ranks", 2, 3);
    if (few_ > 0) add_sliced("resumed with tensor 2", 1, 1).begins_as = fp32 + "stage 3";
    if (limits_.ranks < 4) return;
    if (why_not_swapped(model, 2, 2).empty()) {
      Layout& both = add_sliced("tensor 2, context 2", 1, 1);
      both.context = 2;
      both.ranks = 4;
    }
    if (model.num_hidden_layers < 2) return;
    Layout& both = add_pipeline(fp32 + "tensor 2, pipeline 2", 1, 1);
    set_exact(both);
    both.tensor = 2;
    both.ranks = 4;
  }

  void resumed() {
    Layout& same = like_stage_3("resumed", {});
    same.begins_as = "stage 3";
    Layout& elsewhere = add("resumed elsewhere", many_ > few_ ? many_ : 1, many_ > few_ ? 1 : 0,
                            many_ > few_ ? at_once(many_) : all_.front().local_batch_size);
    elsewhere.begins_as = "stage 3";
    if (!limits_.full) return;
    Layout& back = like_stage_3("resumed from one rank", {});
    back.same_as = "";
    back.begins_as = "reference";
  }

  // Uses a higher precision, since 16 bits would round small errors away.
  void strict() {
    if (!coarse_) return;
    const auto add_strict = [&](const std::string& name, int ranks, std::int64_t stage) -> Layout& {
      Layout& layout = add("fp32, " + name, ranks, stage, in_parts(ranks));
      set_exact(layout);
      return layout;
    };
    add_strict("stage 0", few_, 0);
    add_strict("stage 3", few_, 3);
    if (config_.job.over_ranks() && many_ == 3) return;
    add_strict("hybrid", many_, 3).shard_degree = many_ % 2 == 0 ? many_ / 2 : 1;
  }

  // job.reproducible = "ranks" promises results independent of the layout.
  void same_bits_everywhere() {
    for (Layout& layout : all_)
      if (!layout.is_probe && layout.name != "reference")
        layout.same_as = layout.arithmetic() == all_.front().arithmetic() ? "reference" : "probe";
  }

  const Config& config_;
  LayoutLimits limits_;
  std::int64_t global_;
  bool sums_;
  bool coarse_;  // the configuration's precision is less than fp32's
  int few_ = 0, many_ = 0;
  std::vector<Layout> all_;
};

}  // namespace

std::string Layout::describe(std::int64_t global_batch_size) const {
  std::string words = text(ranks, ranks == 1 ? " rank" : " ranks", ", stage ", stage);
  if (shard_degree > 0) words += text(", shards over ", shard_degree);
  if (tensor > 1) words += text(", tensor ", tensor);
  if (context > 1) words += text(", context ", context);
  if (pipeline > 1) words += text(", pipeline ", pipeline);
  words += text(", ", global_batch_size / (ranks / (tensor * context * pipeline) * micro_batch_rows), " x ",
                micro_batch_rows, " rows, ", arithmetic());
  for (const std::string& other : others) words += ", " + other;
  if (more_threads) words += ", one thread more a rank";
  if (!begins_as.empty()) words += ", from a checkpoint of `" + begins_as + "`";
  return words;
}

std::vector<std::string> Layout::overrides(std::int64_t global_batch_size) const {
  std::vector<std::string> all = {text("training.global_batch_size=", global_batch_size),
                                  text("training.local_batch_size=", local_batch_size),
                                  "training.precision=" + precision,
                                  "training.matmul_precision=" + products,
                                  text("zero.stage=", stage),
                                  text("zero.shard_degree=", shard_degree),
                                  text("parallel.tensor=", tensor),
                                  text("parallel.context=", context),
                                  text("parallel.pipeline=", pipeline),
                                  "parallel.schedule=1f1b",
                                  "activation_checkpoint.mode=none",
                                  "activation_checkpoint.mlp_tokens=0",
                                  "offload.activations=none",
                                  "offload.optimizer=none",
                                  "offload.parameters=none",
                                  "checkpoint.interval=0",
                                  "checkpoint.every_minutes=0",
                                  "training.on_nonfinite=stop",
                                  "job.time_limit=",
                                  "metrics.log_interval=1",
                                  "metrics.tensorboard=false",
                                  "metrics.trackio=",
                                  "metrics.step_parts=false",
                                  "metrics.trace_steps=[0, 0]",
                                  "metrics.samples=",
                                  "checkpoint.keep_best=false",
                                  "training.patience=0",
                                  "metrics.dump_first_step="};
  all.insert(all.end(), others.begin(), others.end());
  if (precision != "bf16") all.emplace_back("optimizer.master_dtype=fp32");  // fp32 has no master weights to split
  // Stochastic rounding amplifies the smallest difference and would hide finer ones.
  if (precision == "fp32") all.emplace_back("optimizer.state_dtype=fp32");
  return all;
}

std::int64_t global_batch_of(const Config& config) {
  return config.training.global_batch_size.value_or(2 * config.training.local_batch_size);
}

std::vector<Layout> layouts_of(const Config& config, const LayoutLimits& limits) {
  return Layouts(config, limits).make();
}

std::vector<Layout> chosen(const std::vector<Layout>& all, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return all;
  std::set<std::string> names{all[0].name, all[1].name};
  const auto find = [&](const std::string& word) -> const Layout& {
    int number = 0;  // as in --list, without the probe
    for (const Layout& layout : all)
      if (layout.name == word || (!layout.is_probe && std::to_string(++number) == word)) return layout;
    throw InputError("--only " + word + ": there is no such layout; --list shows their numbers and names");
  };
  for (const std::string& word : wanted)
    for (std::string name = find(word).name; !name.empty(); name = find(name).same_as) {
      names.insert(name);
      if (const std::string& first = find(name).begins_as; !first.empty()) names.insert(first);
    }
  std::vector<Layout> some;
  for (const Layout& layout : all)
    if (names.contains(layout.name)) some.push_back(layout);
  return some;
}

}  // namespace zero

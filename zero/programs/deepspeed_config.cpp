#include <algorithm>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/programs/foreign_config.h"
#include "zero/programs/foreign_values.h"

namespace zero {
namespace foreign {
namespace {

const std::map<std::string, std::string>& places() {
  static const std::map<std::string, std::string> names{{"cpu", "cpu"}, {"nvme", "nvme"}, {"none", "none"}};
  return names;
}

std::string betas_into(const Json& value, ForeignConfig& config) {
  if (!value.is_array() || value.size() != 2) return "no two numbers";
  set(config, "optimizer.betas", "[" + number_of(value[0]).dump() + ", " + number_of(value[1]).dump() + "]");
  return "";
}

/// Parameters of an Adam whose other value is not there.
Converter as_here(bool here, const std::string& why) {
  return [=](const Json& value, ForeignConfig&) { return value == here ? "as here" : why; };
}

Converter word_as_here(const std::string& here, const std::string& why) {
  return [=](const Json& value, ForeignConfig&) { return words_of(value) == here ? "as here" : why; };
}

/// Only if it is on: its type is that of the computation.
std::string autocast_into(const Json& value, ForeignConfig& config) {
  const auto at = [&](const char* key) { return value.is_object() && value.contains(key) ? value[key] : Json(); };
  if (at("enabled") != true) return "off, as here";
  const bool half = words_of(at("dtype")).find("float16") != std::string::npos &&
                    words_of(at("dtype")).find("bfloat16") == std::string::npos;
  set(config, "training.precision", half ? "\"fp16\"" : "\"bf16\"");
  return "";
}

/// take_rates_of_muon() takes it, once lr and the optimizer are read.
std::string rate_of_muon(const Json& value, ForeignConfig&) {
  number_of(value);
  return "";
}

/// Not absent: a misspelt one is refused, since it may make the global batch.
std::string accumulation_into(const Json& value, ForeignConfig&) {
  number_of(value);
  return "with the micro-batch and the ranks it makes the global batch";
}

/// DeepSpeed's -1 is no group.
std::string shard_group_into(const Json& value, ForeignConfig& config) {
  const Json ranks = number_of(value);
  if (ranks.get<double>() < 1) return "off, as here";
  set(config, "zero.shard_degree", ranks.dump());
  return "";
}

const KeyTable& deepspeed_table() {
  const std::string buffers = "a size of DeepSpeed's buffers; here buffers follow from the units",
                    whole = "the result is always whole; --set checkpoint.export_dtype sets its type",
                    scale = "the loss scale of fp16 begins and moves by itself here";
  static const KeyTable table{
      {"train_batch_size", number("training.global_batch_size")},
      {"train_micro_batch_size_per_gpu", number("training.local_batch_size")},
      {"gradient_accumulation_steps", accumulation_into},
      {"gradient_clipping", number("training.max_norm")},
      {"steps_per_print", absent("it spaces lines of text there; --set metrics.log_interval spaces records, too")},
      {"bf16.enabled", precision("bf16")},
      {"bf16.bf16_optimizer_states", flag("optimizer.state_dtype", "\"bf16\"")},
      {"bf16.bf16_master_weights_and_grads",
       absent("masters have 4 bytes here; --set optimizer.master_dtype=split saves two of them")},
      {"torch_autocast", autocast_into},
      {"communication_data_type", word("zero.reduce_dtype", {{"fp32", "fp32"}})},
      {"sequence_parallel_size", shared_rows("parallel.context")},
      {"tensor_parallel.autotp_size", shared_rows("parallel.tensor")},
      {"fp16.enabled", precision("fp16")},
      {"fp16.loss_scale", absent(scale)},
      {"fp16.auto_cast", absent("inputs are tokens, which have no type to cast")},
      {"fp16.loss_scale_window", absent(scale)},
      {"fp16.initial_scale_power", absent(scale)},
      {"fp16.hysteresis", absent(scale)},
      {"fp16.min_loss_scale", absent(scale)},
      {"zero_optimization.stage", number("zero.stage")},
      {"zero_optimization.offload_optimizer.device", word("offload.optimizer", places())},
      {"zero_optimization.offload_param.device", word("offload.parameters", places())},
      {"zero_optimization.offload_optimizer.nvme_path", folder("offload.nvme_dir")},
      {"zero_optimization.offload_param.nvme_path", folder("offload.nvme_dir")},
      {"zero_optimization.zero_hpz_partition_size",
       absent("it keeps a second copy of the weights on each node; for hybrid sharding give --set zero.shard_degree")},
      {"zero_optimization.allgather_partitions", absent("weights are always gathered by an all-gather here")},
      {"zero_optimization.reduce_scatter", absent("gradients are always reduced by a reduce-scatter here")},
      {"zero_optimization.reduce_bucket_size", absent(buffers)},
      {"zero_optimization.allgather_bucket_size", absent(buffers)},
      {"zero_optimization.stage3_prefetch_bucket_size", absent(buffers)},
      {"zero_optimization.stage3_param_persistence_threshold", absent(buffers)},
      {"zero_optimization.stage3_max_live_parameters", absent(buffers)},
      {"zero_optimization.stage3_max_reuse_distance", absent(buffers)},
      {"zero_optimization.max_live_parameters", absent(buffers)},
      {"zero_optimization.max_reuse_distance", absent(buffers)},
      {"zero_optimization.prefetch_bucket_size", absent(buffers)},
      {"zero_optimization.param_persistence_threshold", absent(buffers)},
      {"zero_optimization.sub_group_size", absent(buffers)},
      {"zero_optimization.overlap_comm", absent("gathers and sums overlap by themselves on GPUs")},
      {"zero_optimization.contiguous_gradients", absent("gradients are always contiguous here")},
      {"zero_optimization.round_robin_gradients", absent("gradients are always divided evenly here")},
      {"zero_optimization.stage3_gather_16bit_weights_on_model_save", absent(whole)},
      {"zero_optimization.stage3_gather_fp16_weights_on_model_save", absent(whole)},
      {"zero_optimization.gather_16bit_weights_on_model_save", absent(whole)},
      {"zero_optimization.mics_shard_size", shard_group_into},
      {"optimizer.type", optimizer_into},
      {"optimizer.params.torch_adam", absent("the kernels here are the only ones")},
      {"optimizer.params.adam_w_mode", as_here(true, "weight decay is always AdamW's here, never a part of gradients")},
      {"optimizer.params.bias_correction", as_here(true, "the moments' bias is always corrected here")},
      {"optimizer.params.lr", number("optimizer.lr")},
      {"optimizer.params.learning_rate", misnamed("lr")},
      {"optimizer.params.eps", number("optimizer.eps")},
      {"optimizer.params.momentum", number("optimizer.momentum")},
      {"optimizer.params.nesterov", flag("optimizer.nesterov", "true", "false")},
      {"optimizer.params.muon_lr", rate_of_muon},
      {"optimizer.params.adam_lr", rate_of_muon},
      {"data_types.grad_accum_dtype", word("zero.gradient_dtype", {{"fp32", "fp32"}, {"bf16", "bf16"}})},
      {"optimizer.params.weight_decay", number("optimizer.weight_decay")},
      {"optimizer.params.betas", betas_into},
      {"scheduler.type",
       scheduler({{"warmuplr", "constant"}, {"warmupdecaylr", "linear"}, {"warmupcosinelr", "cosine"}})},
      {"scheduler.params.warmup_num_steps", steps("lr_scheduler.warmup_steps")},
      {"scheduler.params.total_num_steps", number("training.steps")},
      {"scheduler.params.cos_min_ratio", number("lr_scheduler.min_lr_ratio")},
      {"scheduler.params.warmup_max_lr", absent("only a number sets the rate")},
      {"scheduler.params.warmup_type", word_as_here("linear", "a warm-up is linear here")},
      {"scheduler.params.warmup_min_lr", absent("a warm-up begins at lr / warmup_steps")},
      {"scheduler.params.warmup_min_ratio", absent("a warm-up begins at lr / warmup_steps")},
      {"activation_checkpointing.partition_activations", flag("activation_checkpoint.mode", "\"full\"")},
      {"activation_checkpointing.cpu_checkpointing", absent("give --set offload.activations=cpu to keep them there")},
      {"tensorboard.enabled", flag("metrics.tensorboard", "true")},
      {"wall_clock_breakdown", absent("metrics.jsonl has each step's times")},
  };
  return table;
}

const PrefixReasons& deepspeed_prefixes() {
  static const PrefixReasons reasons{
      {"aio.", "a setting of DeepSpeed's disk engine; the disk tier here sets itself"},
      {"zero_optimization.offload_", "a setting of DeepSpeed's own disk and host buffers"},
      {"zero_optimization.zenflow", "partial updates are not there: each step updates all elements"},
      {"zero_optimization.zero_quantized_", "collectives are never quantized here"},
      {"zero_allow_untested_optimizer", "a check of DeepSpeed's own"},
      {"zero_force_ds_cpu_optimizer", "a check of DeepSpeed's own"},
      {"compile.", "kernels are compiled with the program here"},
      {"flops_profiler.", "metrics.jsonl has a step's rates, and --set metrics.trace_steps writes a trace"},
      {"comms_logger.", "--set metrics.trace_steps writes a trace with each collective"},
      {"sparse_attention.", "attention is dense here, or has the windows of the model"},
      {"compression_training.", "no compression while training is there"},
      {"progressive_layer_drop.", "every step trains all layers here"},
      {"curriculum_learning.", "rows are shuffled here (data.shuffle)"},
      {"data_efficiency.", "rows are shuffled here (data.shuffle)"},
      {"autotuning.", "zero_plan finds the layout"},
      {"elasticity.", "a run resumes on any number of ranks here"},
      {"prescale_gradients", "gradients are summed in fp32, and then divided"},
      {"gradient_predivide_factor", "gradients are summed in fp32, and then divided"},
      {"memory_breakdown", "zero_train --dry-run prints the memory"},
  };
  return reasons;
}

/// The parameters of the optimizer or of the scheduler.
class Parameters {
 public:
  Parameters(const Json& tree, const std::string& section) : path_(section + ".params.") {
    const Json::json_pointer pointer("/" + section + "/params"), type("/" + section + "/type");
    if (tree.contains(pointer) && tree[pointer].is_object()) all_ = tree[pointer];
    if (tree.contains(type)) type_ = words_of(tree[type]);
  }

  const std::string& type() const { return type_; }  // empty: none
  std::string path(const std::string& name) const { return path_ + name; }
  bool has(const std::string& name) const { return all_.contains(name); }
  bool is(const std::string& name, const Json& value) const { return has(name) && all_[name] == value; }
  /// The number as JSON; empty if there is none, or a Trainer fills it in.
  std::string number(const std::string& name) const {
    return has(name) && !all_[name].is_null() && all_[name] != "auto" ? number_of(all_[name]).dump() : "";
  }

 private:
  std::string path_, type_;
  Json all_ = Json::object();
};

void set_from(ForeignConfig& config, const std::string& key, const std::string& toml, const std::string& path) {
  std::erase_if(config.overrides, [&](const std::string& setting) { return setting.starts_with(key + "="); });
  set(config, key, toml);
  config.names[key] = path;
}

/// muon_lr is the rate of the matrices, and adam_lr that of all others. lr stands for one that is missing.
void take_rates_of_muon(const Json& tree, ForeignConfig& config) {
  const Parameters parameters(tree, "optimizer");
  const std::string lr = parameters.number("lr"), matrices = parameters.number("muon_lr"),
                    others = parameters.number("adam_lr");
  if (!holds(config, "optimizer.name=\"muon\"")) {
    for (const char* name : {"muon_lr", "adam_lr"})
      if (parameters.has(name)) config.dropped.emplace_back(parameters.path(name), "is for Muon alone, there too");
    return;
  }
  if (!lr.empty() && !matrices.empty() && !others.empty())
    config.dropped.emplace_back(parameters.path("lr"), "muon_lr and adam_lr are the rates");
  if (!matrices.empty()) set_from(config, "optimizer.lr", matrices, parameters.path("muon_lr"));
  if (const std::string& rate = others.empty() ? lr : others; !rate.empty())
    set_from(config, "optimizer.lr_adamw", rate, parameters.path(others.empty() ? "lr" : "adam_lr"));
}

/// Sets the rate of all tensors, and drops those of the optimizer.
void take_rate(ForeignConfig& config, const std::string& rate, const std::string& path, const std::string& why) {
  for (const char* key : {"optimizer.lr", "optimizer.lr_adamw"})
    if (!holds(config, std::string(key) + "=" + rate)) drop(config, std::string(key) + "=", "", why);
  set_from(config, "optimizer.lr", rate, path);
  if (holds(config, "optimizer.name=\"muon\"")) set_from(config, "optimizer.lr_adamw", rate, path);
}

/// WarmupLR and WarmupDecayLR set the rate of all tensors themselves, if they have one (class WarmupLR in DeepSpeed's
/// lr_schedules.py). Without one WarmupDecayLR takes 0.001, and WarmupLR the optimizer's first.
void take_rate_of_scheduler(const Parameters& scheduler, ForeignConfig& config) {
  const std::string name = "warmup_max_lr", path = scheduler.path(name), rate = scheduler.number(name);
  if (!rate.empty()) {
    std::erase_if(config.dropped, [&](const auto& dropped) { return dropped.first == path; });
    take_rate(config, rate, path, "the scheduler's warmup_max_lr is the rate");
  } else if (scheduler.type() == "WarmupDecayLR" && !scheduler.has(name)) {
    take_rate(config, "0.001", "the default of " + path, "the scheduler's warmup_max_lr is the rate, 0.001 by default");
  }
}

/// WarmupDecayLR ends at warmup_min_lr, where its warm-up begins.
void take_end_of_decay(const Parameters& scheduler, ForeignConfig& config) {
  const std::string most = scheduler.has("warmup_max_lr") ? scheduler.number("warmup_max_lr") : "0.001",
                    least = scheduler.number("warmup_min_lr");
  if (most.empty() || least.empty() || std::stod(most) <= 0) return;
  set_from(config, "lr_scheduler.min_lr_ratio", text(std::stod(least) / std::stod(most)),
           scheduler.path("warmup_min_lr"));
}

/// DeepSpeed's own defaults of a scheduler's parameters ("Learning Rate Schedulers" in its documentation).
void take_scheduler(const Json& tree, ForeignConfig& config) {
  const Parameters scheduler(tree, "scheduler");
  if (!scheduler.type().starts_with("Warmup")) return;
  const bool is_cosine = scheduler.type() == "WarmupCosineLR";
  if (!is_cosine) take_rate_of_scheduler(scheduler, config);
  if (scheduler.type() == "WarmupDecayLR") take_end_of_decay(scheduler, config);
  if (!scheduler.has("warmup_num_steps")) set_default(config, "lr_scheduler.warmup_steps", "1000");
  if (is_cosine && !scheduler.has("cos_min_ratio")) set_default(config, "lr_scheduler.min_lr_ratio", "0.0001");
  if (!scheduler.has("warmup_type"))
    config.dropped.emplace_back(scheduler.path("warmup_type"),
                                "is not in the file, so \"log\" counts there; here a "
                                "warm-up is linear");
}

/// Throws InputError for settings that contradict each other or have no meaning.
void refuse_contradictions(const Json& tree, const std::string& source) {
  const auto is_on = [&](const char* pointer) {
    return tree.contains(Json::json_pointer(pointer)) && tree[Json::json_pointer(pointer)] == true;
  };
  if (is_on("/fp16/enabled") && is_on("/bf16/enabled"))
    throw InputError(source + ": fp16.enabled and bf16.enabled are both true: leave one of them on");
  for (const char* section : {"zero_optimization", "optimizer", "scheduler", "fp16", "bf16"})
    if (const auto found = tree.find(section); found != tree.end() && !found->is_object() && !found->is_null())
      throw InputError(text(source, ": ", section, ": must be an object, and is ", words_of(*found)));
}

/// JSON is also a model's config.json, for example.
void require_own_keys(const Json& tree, const std::string& source) {
  const auto first_of = [](const std::string& path) { return path.substr(0, path.find('.')); };
  for (const auto& [key, value] : tree.items()) {
    for (const auto& [path, rule] : deepspeed_table())
      if (first_of(path) == key) return;
    for (const auto& [prefix, reason] : deepspeed_prefixes())
      if (key.starts_with(first_of(prefix))) return;
  }
  throw InputError(source + ": has no key of DeepSpeed, whose configurations are the JSON that is translated");
}

/// True for PyTorch's own AdamW, whose weight decay is not 0 by default.
bool is_torch_adamw(const Parameters& optimizer) {
  const bool decouples = optimizer.type() == "AdamW" || !optimizer.is("adam_w_mode", false);
  return optimizer.is("torch_adam", true) && decouples;
}

/// DeepSpeed's own defaults. A Trainer's are not known where the file says "auto".
void add_deepspeed_defaults(const Json& tree, ForeignConfig& config) {
  const auto has = [&](const char* pointer) { return tree.contains(Json::json_pointer(pointer)); };
  const auto is_auto = [&](const char* pointer) { return has(pointer) && tree[Json::json_pointer(pointer)] == "auto"; };
  if (!is_auto("/bf16/enabled") && !is_auto("/fp16/enabled")) set_default(config, "training.precision", "\"fp32\"");
  if (!has("/gradient_clipping")) set_default(config, "training.max_norm", "0.0");
  const Parameters optimizer(tree, "optimizer");
  if (is_set(config, "optimizer.name") && !optimizer.has("weight_decay"))
    set_default(config, "optimizer.weight_decay", is_torch_adamw(optimizer) ? "0.01" : "0.0");
  const bool for_trainer = tree.dump().find("\"auto\"") != std::string::npos;
  if (holds(config, "optimizer.name=\"sgd\"")) add_sgd_defaults(config);
  if (!has("/scheduler") && for_trainer)
    config.dropped.emplace_back(
        "scheduler",
        "is not in the file, so a Trainer's counts there, usually linear; here cosine does: give "
        "--set lr_scheduler.type=linear, or another");
  if (!has("/scheduler") && !for_trainer) {
    set_default(config, "lr_scheduler.type", "\"constant\"");
    if (!is_set(config, "lr_scheduler.warmup_ratio")) set_default(config, "lr_scheduler.warmup_steps", "0");
  }
  take_rates_of_muon(tree, config);
  take_scheduler(tree, config);
  const auto whole = [&](const char* key) {
    return tree.contains(key) && tree[key] != "auto" ? std::int64_t(number_of(tree[key]).get<double>()) : 0;
  };
  if (whole("train_batch_size") == 0 && (!has("/gradient_accumulation_steps") || whole("gradient_accumulation_steps")))
    config.rows_of_rank =
        whole("train_micro_batch_size_per_gpu") * std::max<std::int64_t>(1, whole("gradient_accumulation_steps"));
}

/// Keys that Trainers fill in, and their counterparts here.
void list_open_keys(ForeignConfig& config) {
  static const std::map<std::string, std::string> keys{
      {"train_batch_size", "training.global_batch_size"},
      {"train_micro_batch_size_per_gpu", "training.local_batch_size"},
      {"gradient_accumulation_steps", "training.global_batch_size"},
      {"gradient_clipping", "training.max_norm"},
      {"bf16.enabled", "training.precision"},
      {"fp16.enabled", "training.precision"},
      {"optimizer.params.lr", "optimizer.lr"},
      {"optimizer.params.betas", "optimizer.betas"},
      {"optimizer.params.eps", "optimizer.eps"},
      {"optimizer.params.weight_decay", "optimizer.weight_decay"},
      {"scheduler.params.warmup_num_steps", "lr_scheduler.warmup_steps"},
      {"scheduler.params.warmup_max_lr", "optimizer.lr"},
      {"scheduler.params.total_num_steps", "training.steps"}};
  for (const auto& [path, why] : config.dropped)
    if (const auto found = keys.find(path); found != keys.end() && why.starts_with("\"auto\""))
      config.open.emplace_back(path, found->second);
}

/// DeepSpeed reads it at stage 3 alone.
void drop_without_stage_3(ForeignConfig& config) {
  const bool is_off = holds(config, "offload.parameters=\"none\"");
  if (!is_off && !holds(config, "zero.stage=3"))
    drop(config, "offload.parameters=", "", "weights are offloaded at stage 3 alone, there too");
}

}  // namespace
}  // namespace foreign

ForeignConfig translate_deepspeed(const std::string& words, const std::string& source,
                                  const std::vector<std::string>& given) {
  const foreign::Json tree = parse_ordered_json(words, source);
  if (!tree.is_object()) throw InputError(source + ": is no JSON object, as DeepSpeed's configurations are");
  ForeignConfig config;
  config.tool = "DeepSpeed";
  config.source = source;
  config.given = given;
  foreign::require_own_keys(tree, source);
  foreign::refuse_contradictions(tree, source);
  foreign::walk(tree, "", foreign::deepspeed_table(), config, [&](const std::string& path) {
    return foreign::why_absent(source, path, foreign::deepspeed_table(), foreign::deepspeed_prefixes(), {"DeepSpeed"});
  });
  foreign::add_deepspeed_defaults(tree, config);
  foreign::list_open_keys(config);
  foreign::drop_without_stage_3(config);
  foreign::finish(config);
  return config;
}

}  // namespace zero

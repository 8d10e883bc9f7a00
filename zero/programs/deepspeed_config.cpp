#include "base/error.h"
#include "base/json_text.h"
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
  set(config, "optimizer.betas", value.dump());
  return "";
}

const KeyTable& deepspeed_table() {
  const std::string buffers = "a size of DeepSpeed's buffers; here buffers follow from the units",
                    scale = "the loss scale of fp16 begins and moves by itself here";
  static const KeyTable table{
      {"train_batch_size", number("training.global_batch_size")},
      {"train_micro_batch_size_per_gpu", number("training.local_batch_size")},
      {"gradient_accumulation_steps", absent("it follows from global_batch_size, local_batch_size and the ranks")},
      {"gradient_clipping", number("training.max_norm")},
      {"steps_per_print", number("metrics.log_interval")},
      {"bf16.enabled", precision("bf16")},
      {"fp16.enabled", precision("fp16")},
      {"fp16.loss_scale", absent(scale)},
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
      {"zero_optimization.sub_group_size", absent(buffers)},
      {"zero_optimization.overlap_comm", absent("gathers and sums overlap by themselves on GPUs")},
      {"zero_optimization.contiguous_gradients", absent("gradients are always contiguous here")},
      {"zero_optimization.round_robin_gradients", absent("gradients are always divided evenly here")},
      {"zero_optimization.stage3_gather_16bit_weights_on_model_save",
       absent("the result is always whole and in 16 bits")},
      {"optimizer.type", word("optimizer.name", optimizers())},
      {"optimizer.params.lr", number("optimizer.lr")},
      {"optimizer.params.eps", number("optimizer.eps")},
      {"optimizer.params.weight_decay", number("optimizer.weight_decay")},
      {"optimizer.params.betas", betas_into},
      {"scheduler.type", word("lr_scheduler.type",
                              {{"warmuplr", "constant"}, {"warmupdecaylr", "linear"}, {"warmupcosinelr", "cosine"}})},
      {"scheduler.params.warmup_num_steps", steps("lr_scheduler.warmup_steps")},
      {"scheduler.params.total_num_steps", number("training.steps")},
      {"scheduler.params.cos_min_ratio", number("lr_scheduler.min_lr_ratio")},
      {"scheduler.params.warmup_max_lr", absent("the rate is [optimizer] lr")},
      {"scheduler.params.warmup_min_lr", absent("a warm-up begins at lr / warmup_steps")},
      {"scheduler.params.warmup_min_ratio", absent("a warm-up begins at lr / warmup_steps")},
      {"activation_checkpointing.partition_activations", flag("activation_checkpoint.mode", "\"full\"")},
      {"activation_checkpointing.cpu_checkpointing", absent("give --set offload.activations=cpu to keep them there")},
      {"tensorboard.enabled", flag("metrics.tensorboard", "true")},
      {"wall_clock_breakdown", absent("metrics.jsonl has each step's times")},
  };
  return table;
}

std::string why_not_in_deepspeed(const std::string& path) {
  if (path.starts_with("aio.")) return "a setting of DeepSpeed's disk engine; the disk tier here sets itself";
  if (path.find("offload_") != path.npos) return "a setting of DeepSpeed's own disk and host buffers";
  return why_absent(path, {"DeepSpeed"});
}

}  // namespace
}  // namespace foreign

ForeignConfig translate_deepspeed(const std::string& words, const std::string& source) {
  const foreign::Json tree = parse_ordered_json(words, source);
  if (!tree.is_object()) throw InputError(source + ": is no JSON object, as DeepSpeed's configurations are");
  ForeignConfig config;
  config.tool = "DeepSpeed";
  foreign::walk(tree, "", foreign::deepspeed_table(), config, foreign::why_not_in_deepspeed);
  foreign::finish(config);
  return config;
}

}  // namespace zero

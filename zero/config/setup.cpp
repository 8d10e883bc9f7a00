#include "zero/config/setup.h"

#include "base/error.h"
#include "models/families/config_json.h"
#include "models/formats/base_model.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"
#include "zero/config/optimizer_settings.h"

namespace zero {
namespace {

bool has_gguf_base(const Config& config) { return config.model.path && is_gguf_model(*config.model.path); }

/// A frozen base keeps its file's format.
FrozenFormat gguf_format(const Config& config) {
  const GgufModel model = open_gguf_model(*config.model.path);
  if (config.lora->init_lora_weights == "pissa" && config.lora->adapter.empty())
    throw InputError(config.where("lora.init_lora_weights") +
                     ": changes the base's weights, and those of a GGUF file are held as they are: leave it out, or "
                     "give lora.quantization");
  FrozenFormat format;
  format.ggml_type = [weights = model.weights](const TensorSpec& tensor) { return weights->type_of(tensor); };
  return format;
}

FrozenFormat frozen_format_of(const Config& config) {
  if (!config.lora) return {};
  if (config.lora->quantization == "nf4") return FrozenFormat::in_nf4(config.lora->double_quantization);
  if (config.lora->quantization == "int8") return FrozenFormat::in_8_bits();
  if (has_gguf_base(config)) return gguf_format(config);
  return {};
}

DropoutShares dropout_shares_of(const Config& config, const DropoutShares& own) {
  DropoutShares shares = config.preference ? DropoutShares() : own;
  const ModelSection& given = config.model;
  shares.embedding = given.embedding_dropout.value_or(shares.embedding);
  shares.attention = given.attention_dropout.value_or(shares.attention);
  shares.residual = given.residual_dropout.value_or(shares.residual);
  return shares;
}

}  // namespace

ModelConfig model_config_of(const Config& config) {
  if (config.model.path) {
    ModelConfig model = config_of_model(*config.model.path);
    model.run_dropout = dropout_shares_of(config, model.dropout);
    return model;
  }
  ModelConfig model = architecture_of(*config.model.preset);
  for (const auto& [name, value] : config.model.fields) set_model_field(model, name, value);
  model.dropout = dropout_shares_of(config, model.dropout);
  validate(model, config.source);
  return model;
}

at::ScalarType type_of_precision(const std::string& precision) {
  if (precision == "fp32") return at::kFloat;
  return precision == "fp16" ? at::kHalf : at::kBFloat16;
}

std::string precision_name(at::ScalarType type) {
  return type == at::kBFloat16 ? "bf16" : type == at::kHalf ? "fp16" : "fp32";
}

Precision precision_of(const Config& config, const BatchArithmetic& batch) {
  Precision precision;
  precision.compute = type_of_precision(config.training.precision);
  precision.master = at::kFloat;
  if (config.zero.gradient_dtype == "auto") {
    const bool rounds = batch.accumulation == 1 && !config.job.over_ranks();
    precision.gradient = rounds ? precision.compute : at::kFloat;
  } else {
    precision.gradient = type_of_precision(config.zero.gradient_dtype);
  }
  return precision;
}

EngineOptions engine_options_of(const Config& config, const BatchArithmetic& batch) {
  EngineOptions options;
  options.plan = ShardPlan::for_stage(int(config.zero.stage));
  options.precision = precision_of(config, batch);
  options.optimizer = config.optimizer;
  options.storage = state_storage_of(config);
  options.keep_frozen = config.zero.frozen == "keep";
  options.frozen = frozen_format_of(config);
  options.sums_in_order = config.job.over_ranks();
  options.micro_batches = batch.accumulation;
  const std::string& mode = config.activation_checkpoint.mode;
  options.recompute_every = mode == "full" ? 1 : mode == "selective" ? int(config.activation_checkpoint.every) : 0;
  options.recompute_attention = mode == "attention";
  options.keep_inputs = config.activation_checkpoint.keep == "on";
  options.mlp_tokens = config.activation_checkpoint.mlp_tokens;
  options.inputs_on_host = config.offload.activations == "cpu";
  const std::string& schedule = config.parallel.schedule;
  options.pipeline.schedule = schedule == "gpipe"         ? ScheduleKind::gpipe
                              : schedule == "interleaved" ? ScheduleKind::interleaved
                                                          : ScheduleKind::one_f_one_b;
  options.pipeline.chunks = int(config.parallel.chunks);
  return options;
}

bool fuses_accumulation_on_gpus(const Config& config) { return !config.job.deterministic && !config.job.over_ranks(); }

TokenizerSource tokenizer_source_of(const Config& config) {
  const std::string model =
      has_gguf_base(config) ? gguf_tokenizer_folder(GgufFile(*config.model.path)) : config.model.path.value_or("");
  TokenizerSource source = find_tokenizer(config.data.tokenizer, config.lora ? config.lora->adapter : "", model);
  source.chat_template = config.data.chat_template;
  return source;
}

std::string export_dtype_of(const Config& config) {
  if (config.checkpoint.export_dtype != "auto") return config.checkpoint.export_dtype;
  if (!config.model.path || config.training.precision == "fp32") return "fp32";
  return precision_name(stored_type_of_model(*config.model.path));
}

HfWriteOptions write_options_of(const Config& config) {
  HfWriteOptions options;
  options.type = type_of_precision(export_dtype_of(config));
  if (!has_gguf_base(config)) options.base = config.model.path.value_or("");
  options.tokenizer = tokenizer_source_of(config);
  return options;
}

std::string base_name_of(const Config& config) { return config.model.path.value_or(config.model.preset.value_or("")); }

bool copies_checkpoints(const Config& config) {
  const bool on_disk = config.offload.optimizer == "nvme" || config.offload.parameters == "nvme";
  return config.checkpoint.asynchronous && config.checkpoint.is_regular() && !on_disk;
}

ScheduleOptions schedule_of(const Config& config, std::int64_t steps) {
  ScheduleOptions options;
  const std::string& type = config.lr_scheduler.type;
  options.type = type == "constant" ? ScheduleType::constant
                 : type == "linear" ? ScheduleType::linear
                 : type == "wsd"    ? ScheduleType::wsd
                                    : ScheduleType::cosine;
  options.lr = config.optimizer.lr;
  options.steps = steps;
  options.warmup_steps = config.lr_scheduler.warmup_of(steps);
  options.min_lr_ratio = config.lr_scheduler.min_lr_ratio;
  options.decay_ratio = config.lr_scheduler.decay_ratio;
  return options;
}

}  // namespace zero

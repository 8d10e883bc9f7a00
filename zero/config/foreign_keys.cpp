#include "zero/config/foreign_keys.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace zero {
namespace {

std::string normal(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.substr(std::min(name.find_first_not_of('_'), name.size()));
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

std::string is_called(const ForeignKey& foreign) {
  const std::size_t dot = foreign.key.find('.');
  return "`" + foreign.key.substr(dot + 1) + "` in [" + foreign.key.substr(0, dot) + "]" +
         (foreign.note.empty() ? "" : ", " + foreign.note);
}

const ForeignKey* find(const std::string& name) {
  for (const ForeignKey& foreign : foreign_keys())
    if (foreign.name == name) return &foreign;
  return nullptr;
}

// Words before a colon, in text order: keys of JSON and YAML at any depth.
std::vector<std::string> words_before_colons(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t colon = text.find(':'); colon != text.npos; colon = text.find(':', colon + 1)) {
    std::size_t end = colon;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '"')) --end;
    std::size_t begin = end;
    while (begin > 0 && is_name(text[begin - 1])) --begin;
    if (begin < end) words.push_back(normal(std::string(text.substr(begin, end - begin))));
  }
  return words;
}

// The first line that is neither empty nor a comment.
std::string_view first_line(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size()),
                      begin = std::min(text.find_first_not_of(" \t\r", at), end);
    if (begin < end && text[begin] != '#') return text.substr(begin, end - begin);
    at = end + 1;
  }
  return {};
}

bool is_yaml(std::string_view line) {
  if (line.starts_with("---") || line.starts_with("- ")) return true;
  const std::size_t end = static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), is_name) - line.begin());
  return end > 0 && end < line.size() && line[end] == ':';
}

}  // namespace

std::string foreign_key_hint(const std::string& section, const std::string& name) {
  const ForeignKey* foreign = find(normal(section) + "." + normal(name));
  if (!foreign) foreign = find(normal(name));
  if (foreign) return "`" + name + "` (" + foreign->tools + ") is " + is_called(*foreign);
  for (const AbsentKey& absent : absent_keys())
    if (absent.name == normal(name)) return "`" + name + "` (" + absent.tools + ") is not there: " + absent.why;
  return "";
}

std::string foreign_value_hint(const std::string& value, const std::string& rule) {
  const auto takes = [&](const std::string& own) { return rule.find('"' + own + '"') != rule.npos; };
  const std::string word = normal(value);
  if ((word.starts_with("fp8") || word.starts_with("float8")) && takes("bf16")) return "; 8-bit floats are not there";
  static const std::vector<std::pair<std::string, std::string>> words{{"float16", "fp16"},
                                                                      {"half", "fp16"},
                                                                      {"16_mixed", "fp16"},
                                                                      {"bfloat16", "bf16"},
                                                                      {"bf16_mixed", "bf16"},
                                                                      {"float32", "fp32"},
                                                                      {"float", "fp32"},
                                                                      {"no", "fp32"},
                                                                      {"adam", "adamw"},
                                                                      {"adamw_torch", "adamw"},
                                                                      {"adamw_hf", "adamw"},
                                                                      {"adamw_torch_fused", "adamw"},
                                                                      {"adamw_8bit", "adamw8bit"},
                                                                      {"adamw_bnb_8bit", "adamw8bit"},
                                                                      {"paged_adamw_8bit", "adamw8bit"},
                                                                      {"warmup_stable_decay", "wsd"},
                                                                      {"constant_with_warmup", "constant"},
                                                                      {"int4", "nf4"},
                                                                      {"4bit", "nf4"},
                                                                      {"8bit", "int8"}};
  for (const auto& [foreign, own] : words)
    if (word == foreign && takes(own)) return "; " + value + " is called \"" + own + "\" here";
  return "";
}

const std::vector<AbsentKey>& absent_keys() {
  static const std::string hf = "Hugging Face", trl = "TRL";
  static const std::string reference =
      "the reference is the model at the run's start, computed once (docs/preferences.md)";
  static const std::vector<AbsentKey> keys = {
      {"report_to", hf,
       "metrics.jsonl in the output directory has each step's figures, and zero_report draws them; [metrics] "
       "tensorboard = true and trackio = \"PROJECT\" write them for these tools"},
      {"wandb_project", "axolotl",
       "metrics.jsonl in the output directory has each step's figures, and zero_report draws them; [metrics] trackio = "
       "\"PROJECT\" writes them for a dashboard on this machine"},
      {"ref_model", trl, reference},
      {"precompute_ref_log_probs", trl, reference},
      {"sync_ref_model", trl, reference},
      {"reference_free", trl, "preference.method = \"orpo\" needs no reference"},
      {"rpo_alpha", trl,
       "[preference] loss_type = [\"sigmoid\", \"sft\"] and loss_weights = [1.0, ALPHA] are the same"},
      {"max_prompt_length", trl, "training.seq_len limits the prompt and its answer together"},
      {"max_completion_length", trl, "training.seq_len limits the prompt and its answer together"},
      {"truncation_mode", trl, "data.overlong = \"truncate\" keeps the start of a sequence"},
      {"push_to_hub", hf, "the result stays in the output directory; hf upload sends it"},
  };
  return keys;
}

std::string foreign_text_hint(std::string_view text) {
  const std::string_view line = first_line(text);
  const bool json = line.starts_with("{");
  if (!json && !is_yaml(line)) return "";
  const std::vector<std::string> words = words_before_colons(text);
  const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  const bool deepspeed =
      json && (has("zero_optimization") || has("train_batch_size") || has("train_micro_batch_size_per_gpu"));
  std::string hint = std::string(deepspeed ? "this is JSON, DeepSpeed's by its keys"
                                 : json    ? "this is JSON"
                                           : "this looks like YAML") +
                     "; a configuration is TOML, for example examples/pretrain.toml" +
                     (deepspeed || (!json && has("base_model")) ? ", and zero_config --from translates this one" : "");
  std::vector<const ForeignKey*> told;
  for (const std::string& word : words)
    if (const ForeignKey* foreign = find(word);
        foreign && told.size() < 4 && std::find(told.begin(), told.end(), foreign) == told.end()) {
      hint += (told.empty() ? ", where `" : "; `") + word + "` is " + is_called(*foreign);
      told.push_back(foreign);
    }
  return hint;
}

const std::vector<ForeignKey>& foreign_keys() {
  static const std::string hf = "Hugging Face", ds = "DeepSpeed", axolotl = "axolotl", titan = "torchtitan",
                           tune = "torchtune", lit = "LitGPT", megatron = "Megatron", peft = "PEFT";
  static const std::vector<ForeignKey> keys = {
      {"out_dir", lit, "job.output_dir", ""},
      {"dump_folder", titan, "job.output_dir", ""},

      {"model_name_or_path", hf, "model.path", "a directory on this machine"},
      {"model.name", titan, "model.path", "a directory on this machine, or `preset`"},
      {"pretrained_model_name_or_path", hf, "model.path", "a directory on this machine"},
      {"base_model", axolotl, "model.path", "a directory on this machine"},
      {"checkpoint_dir", lit + ", " + tune, "model.path", "a directory on this machine"},
      {"hf_assets_path", titan, "model.path", "a directory on this machine"},

      {"train_file", hf, "data.train", ""},
      {"dataset", tune + ", " + titan, "data.train", "files on this machine"},
      {"datasets", axolotl, "data.train", "files on this machine"},
      {"dataset_name", hf, "data.train", "files on this machine"},
      {"data_path", megatron, "data.train", "files on this machine, and its numbers are `weights`"},
      {"interleave_probs", "LLaMA-Factory", "data.weights", "a number for each file of `train`"},
      {"dataset_weights", "nanotron", "data.weights", "a number for each file of `train`"},
      {"validation_file", hf, "data.validation", ""},
      {"test_datasets", axolotl, "data.validation", "files on this machine"},
      {"tokenizer_name", hf, "data.tokenizer", "a tokenizer.json or tokenizer.model on this machine"},
      {"tokenizer_name_or_path", hf, "data.tokenizer", "a tokenizer.json or tokenizer.model on this machine"},
      {"tokenizer_path", titan, "data.tokenizer", ""},
      {"sample_packing", axolotl, "data.packing", ""},
      {"train_on_inputs", axolotl, "data.train_on", "\"all\" for true, \"assistant\" for false"},
      {"train_on_input", tune, "data.train_on", "\"all\" for true, \"assistant\" for false"},

      {"max_steps", hf, "training.steps", ""},
      {"num_steps", tune, "training.steps", ""},
      {"max_iters", lit, "training.steps", ""},
      {"train_iters", megatron, "training.steps", ""},
      {"num_train_epochs", hf, "training.epochs", ""},
      {"num_epochs", axolotl, "training.epochs", ""},
      {"max_seq_length", hf + ", " + lit, "training.seq_len", ""},
      {"max_seq_len", tune, "training.seq_len", ""},
      {"max_length", hf, "training.seq_len", ""},
      {"model_max_length", hf, "training.seq_len", ""},
      {"seq_length", megatron, "training.seq_len", ""},
      {"sequence_len", axolotl, "training.seq_len", ""},
      {"sequence_length", megatron, "training.seq_len", ""},
      {"block_size", lit, "training.seq_len", ""},
      {"cutoff_len", "LLaMA-Factory", "training.seq_len", ""},
      {"batch_size", tune, "training.local_batch_size", "sequences that one rank computes at once"},
      {"per_device_train_batch_size", hf, "training.local_batch_size", ""},
      {"per_device_eval_batch_size", hf, "training.local_batch_size", "which validation uses too"},
      {"micro_batch_size", megatron + ", " + lit + ", " + axolotl, "training.local_batch_size", ""},
      {"train_micro_batch_size_per_gpu", ds, "training.local_batch_size", ""},
      {"train_batch_size", ds, "training.global_batch_size", ""},
      {"gradient_accumulation_steps", hf + ", " + ds, "training.global_batch_size",
       "which is local_batch_size x ranks x accumulation steps"},
      {"gradient_accumulation_iters", lit, "training.global_batch_size",
       "which is local_batch_size x ranks x accumulation steps"},
      {"max_grad_norm", hf, "training.max_norm", ""},
      {"gradient_clipping", ds, "training.max_norm", ""},
      {"clip_grad_norm", tune, "training.max_norm", ""},
      {"clip_grad", megatron, "training.max_norm", ""},
      {"bf16", hf + ", " + ds, "training.precision", "with precision = \"bf16\""},
      {"fp16", hf + ", " + ds, "training.precision", "with precision = \"fp16\""},
      {"dtype", tune, "training.precision", "one of \"fp32\", \"bf16\", \"fp16\""},
      {"torch_dtype", hf, "training.precision", "one of \"fp32\", \"bf16\", \"fp16\""},
      {"mixed_precision_param", titan, "training.precision", "one of \"fp32\", \"bf16\", \"fp16\""},
      {"eval_steps", hf, "training.validation_interval", ""},
      {"eval_interval", megatron + ", " + lit, "training.validation_interval", ""},

      {"embd_pdrop", hf, "model.embedding_dropout", ""},
      {"attn_pdrop", hf, "model.attention_dropout", ""},
      {"resid_pdrop", hf, "model.residual_dropout", ""},
      {"attn_dropout", tune, "model.attention_dropout", ""},
      {"hidden_dropout", megatron, "model.residual_dropout", "and `embedding_dropout`"},

      {"learning_rate", hf + ", " + peft + ", " + lit, "optimizer.lr", ""},
      {"adam_beta1", hf, "optimizer.betas", "with betas = [beta1, beta2]"},
      {"adam_beta2", hf, "optimizer.betas", "with betas = [beta1, beta2]"},
      {"beta1", titan, "optimizer.betas", "with betas = [beta1, beta2]"},
      {"beta2", titan, "optimizer.betas", "with betas = [beta1, beta2]"},
      {"adam_epsilon", hf, "optimizer.eps", ""},
      {"optim", hf, "optimizer.name", "as in name = \"adamw\""},
      {"optimizer.type", ds, "optimizer.name", "as in name = \"adamw\""},

      {"lr_scheduler_type", hf, "lr_scheduler.type", ""},
      {"decay_type", titan, "lr_scheduler.type", ""},
      {"warmup_ratio", hf, "lr_scheduler.warmup_ratio", ""},
      {"num_warmup_steps", hf + ", " + tune, "lr_scheduler.warmup_steps", ""},
      {"lr_warmup_steps", lit, "lr_scheduler.warmup_steps", ""},
      {"lr_warmup_iters", megatron, "lr_scheduler.warmup_steps", ""},
      {"min_lr", megatron + ", " + lit, "lr_scheduler.min_lr_ratio", "which is min_lr / lr"},
      {"min_lr_factor", titan, "lr_scheduler.min_lr_ratio", ""},

      {"zero_optimization", ds, "zero.stage", "with [zero] for the section"},
      {"zero_stage", "accelerate", "zero.stage", ""},
      {"fsdp", hf, "zero.stage", "where 3 is full sharding and 2 is shard_grad_op"},
      {"sharding_strategy", "FSDP", "zero.stage", "where 3 is FULL_SHARD, 2 SHARD_GRAD_OP and 0 NO_SHARD"},
      {"parallelism", titan, "zero.stage", "and what is divided over how many ranks `shard_degree`"},
      {"data_parallel_shard_degree", titan, "zero.shard_degree", "where 0 is all ranks"},
      {"data_parallel_replicate_degree", titan, "zero.shard_degree", "which is ranks / replicas"},
      {"context_parallel_degree", titan, "parallel.context", ""},
      {"context_parallel_size", megatron, "parallel.context", ""},
      {"sequence_parallel_size", ds, "parallel.context", ""},
      {"tensor_parallel_degree", titan, "parallel.tensor", ""},
      {"tensor_model_parallel_size", megatron, "parallel.tensor", ""},
      {"tp_size", "accelerate", "parallel.tensor", ""},
      {"pipeline_parallel_degree", titan, "parallel.pipeline", ""},
      {"pipeline_model_parallel_size", megatron, "parallel.pipeline", ""},
      {"pp_size", "accelerate", "parallel.pipeline", ""},
      {"pipeline_parallel_schedule", titan, "parallel.schedule", ""},
      {"num_virtual_stages_per_pipeline_rank", megatron, "parallel.chunks", ""},
      {"zero_hpz_partition_size", ds, "zero.shard_degree", ""},
      {"communication_data_type", ds, "zero.reduce_dtype", ""},
      {"mixed_precision_reduce", titan, "zero.reduce_dtype", ""},

      {"gradient_checkpointing", hf, "activation_checkpoint.mode", "with mode = \"full\""},
      {"activation_checkpointing", ds, "activation_checkpoint.mode", "with mode = \"full\""},
      {"enable_activation_checkpointing", tune, "activation_checkpoint.mode", "with mode = \"full\""},
      {"recompute_granularity", megatron, "activation_checkpoint.mode", ""},

      {"offload_optimizer", ds, "offload.optimizer", "one of \"none\", \"cpu\", \"nvme\""},
      {"offload_param", ds, "offload.parameters", "one of \"none\", \"cpu\", \"nvme\""},
      {"enable_cpu_offload", titan, "offload.optimizer", "with optimizer = \"cpu\""},
      {"nvme_path", ds, "offload.nvme_dir", ""},

      {"lora.rank", peft + ", " + tune, "lora.r", ""},
      {"lora_rank", tune + ", LLaMA-Factory", "lora.r", ""},
      {"lora_r", axolotl + ", " + lit, "lora.r", ""},
      {"lora.alpha", tune, "lora.lora_alpha", ""},
      {"lora.dropout", tune, "lora.lora_dropout", ""},
      {"lora_target_modules", axolotl, "lora.target_modules", ""},
      {"lora_target_linear", axolotl, "lora.target_modules", "with target_modules = \"all-linear\""},
      {"lora_attn_modules", tune, "lora.target_modules", ""},
      {"lora_modules_to_save", axolotl, "lora.modules_to_save", ""},
      {"peft_use_dora", axolotl, "lora.use_dora", ""},
      {"load_in_4bit", hf + ", " + axolotl, "lora.quantization", "with quantization = \"nf4\""},
      {"load_in_8bit", hf + ", " + axolotl, "lora.quantization", "with quantization = \"int8\""},
      {"bnb_4bit_quant_type", hf, "lora.quantization", "with quantization = \"nf4\""},
      {"bnb_4bit_use_double_quant", hf, "lora.double_quantization", ""},

      {"save_steps", hf, "checkpoint.interval", ""},
      {"save_interval", megatron + ", " + lit, "checkpoint.interval", ""},
      {"save_total_limit", hf, "checkpoint.keep", ""},
      {"load_best_model_at_end", hf, "checkpoint.keep_best", ""},
      {"val_set_size", axolotl, "data.validation_fraction", "as a share of the rows"},
      {"early_stopping_patience", hf + ", " + axolotl, "training.patience", ""},
      {"async_mode", titan, "checkpoint.asynchronous", "with asynchronous = true"},
      {"async_save", megatron, "checkpoint.asynchronous", ""},
      {"enable_async_checkpointing", tune, "checkpoint.asynchronous", ""},
      {"keep_latest_k", titan, "checkpoint.keep", ""},
      {"logging_steps", hf, "metrics.log_interval", ""},
      {"log_freq", titan, "metrics.log_interval", ""},
      {"enable_tensorboard", titan, "metrics.tensorboard", ""},
      {"save_tb_folder", titan, "metrics.tensorboard", "true or false: the folder is tb/ of job.output_dir"},
      {"log_every_n_steps", tune, "metrics.log_interval", ""},
      {"steps_per_print", ds, "metrics.log_interval", ""},
  };
  return keys;
}

}  // namespace zero

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/programs/foreign_config.h"
#include "zero/programs/foreign_values.h"
#include "zero/programs/yaml_text.h"

namespace zero {
namespace foreign {
namespace {

Converter betas_part(int index) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    const std::string beta = number_of(value).dump();
    for (std::string& set : config.overrides)
      if (set.starts_with("optimizer.betas=[")) {
        const std::size_t begin = set.find('[') + 1, comma = set.find(','), end = set.find(']');
        const std::string first = set.substr(begin, comma - begin), second = set.substr(comma + 2, end - comma - 2);
        set = "optimizer.betas=[" + (index == 0 ? beta : first) + ", " + (index == 1 ? beta : second) + "]";
        return "";
      }
    set(config, "optimizer.betas", index == 0 ? "[" + beta + ", 0.999]" : "[0.9, " + beta + "]");
    return "";
  };
}

/// The paths of a list of data sets, and the names of other keys. A single set may stand without its list, and a path
/// without its keys.
std::pair<std::vector<std::string>, std::string> paths_of(const Json& value) {
  std::pair<std::vector<std::string>, std::string> found;
  for (const Json& one : value.is_array() ? value : Json::array({value})) {
    if (one.is_string()) found.first.push_back(one.get<std::string>());
    if (!one.is_object()) continue;
    for (const auto& [key, part] : one.items())
      if (key == "path" && part.is_string())
        found.first.push_back(part.get<std::string>());
      else if (("," + found.second + ",").find("," + key + ",") == std::string::npos)
        found.second += (found.second.empty() ? "" : ",") + key;
  }
  return found;
}

std::string datasets_into(const Json& value, ForeignConfig& config) {
  const auto [paths, more] = paths_of(value);
  if (paths.empty()) return "names no path";
  for (const std::string& path : paths) config.data += (config.data.empty() ? "" : ",") + path;
  if (more.empty()) return "";
  return "paths are taken; the keys of an example tell its format here (docs/data.md), not " + more;
}

std::string validation_files_into(const Json& value, ForeignConfig& config) {
  const auto [paths, more] = paths_of(value);
  for (const std::string& path : paths)
    if (!is_file(path)) return path + ": is no file here: give --set data.validation";
  if (paths.empty()) return "names no path";
  set(config, "data.validation", Json(paths).dump());
  return "";
}

std::string adapter_into(const Json& value, ForeignConfig& config) {
  const std::string name = words_of(value);
  if (name != "lora" && name != "qlora")
    throw InputError("is " + name + ": here it may be lora or qlora; leave it out to train all weights");
  config.lora = true;
  if (name == "qlora") set(config, "lora.quantization", "\"nf4\"");
  return "";
}

std::string modules_into(const Json& value, ForeignConfig& config) {
  if (!value.is_array()) return "no list";
  set(config, "lora.target_modules", value.dump());
  return "";
}

std::string saved_modules_into(const Json& value, ForeignConfig& config) {
  set(config, "lora.modules_to_save", value.dump());
  return "";
}

std::string epochs_into(const Json& value, ForeignConfig& config) {
  set(config, "training.epochs", text(number_of(value).get<double>()));
  return "";
}

std::string max_steps_into(const Json& value, ForeignConfig& config) {
  if (value.is_number() && value < 0) return "unset there";
  return number("training.steps")(value, config);
}

std::string rate_into(const Json& value, ForeignConfig& config) {
  set(config, "optimizer.lr", words_of(value));
  return "";
}

/// axolotl rounds this share down. If the number of steps is unknown, the run rounds it up.
std::string warmup_into(const Json& value, ForeignConfig& config) {
  const std::string key = "lr_scheduler.warmup_steps";
  const double share = number_of(value).get<double>();
  if (config.steps == 0)
    set(config, "lr_scheduler.warmup_ratio", text(share));
  else
    set(config, key, text(std::int64_t(std::floor(share * double(config.steps) + 1e-6))));
  return "";
}

/// Times per epoch.
Converter per_epoch(const std::string& key) {
  return [=](const Json& value, ForeignConfig& config) -> std::string {
    const double times = number_of(value).get<double>();
    if (times <= 0) return "must be a number of times per epoch above 0, and is " + words_of(value);
    if (config.epochs > 0) return set_share(config, key, 1 / (times * config.epochs));
    add_share(config, {.key = key, .times = times, .name = ""});
    return "";
  };
}

std::string validation_into(const Json& value, ForeignConfig& config) {
  const double share = value == false ? 0 : number_of(value).get<double>();
  if (share == 0) return "off, as here";
  if (share < 0 || share > 0.5)
    return "must be a share of the rows, at most 0.5: give --set data.validation_fraction, or files in data.validation";
  set(config, "data.validation_fraction", text(share));
  return "";
}

std::string template_into(const Json& value, ForeignConfig& config) {
  if (words_of(value) == "tokenizer_default") return "the model's own template applies, as here";
  return word("data.chat_template", {{"chatml", "chatml"}, {"llama3", "llama-3"}})(value, config);
}

const std::set<std::string>& preference_methods() {
  static const std::set<std::string> names{"dpo", "ipo", "orpo", "kto"};
  return names;
}

std::string preference_into(const Json& value, ForeignConfig& config) {
  const std::string method = words_of(value);
  if (!preference_methods().contains(method)) return "off, as here";
  set(config, "preference.method", method == "ipo" ? "\"dpo\"" : '"' + method + '"');
  if (method == "ipo") set(config, "preference.loss_type", "[\"ipo\"]");
  return "";
}

/// The weight of TRL's "sft" term, which join_loss_terms() adds.
std::string likelihood_into(const Json& value, ForeignConfig& config) {
  set(config, "preference.loss_weights", "[1.0, " + number_of(value).dump() + "]");
  return "";
}

/// A file of DeepSpeed, relative to the working directory or beside the configuration. If it is not here, its name
/// usually says the stage.
std::string deepspeed_into(const Json& value, ForeignConfig& config) {
  static const std::regex stage("zero_?([123])", std::regex::icase);
  if (!value.is_string()) return "is written out, and --from reads a file of its own: the planner chooses the stage";
  const std::string name = words_of(value);
  for (const std::filesystem::path& folder :
       {std::filesystem::path(), std::filesystem::path(config.source).parent_path()})
    if (const std::string file = (folder / name).string(); is_file(file)) {
      const ForeignConfig theirs = file.ends_with(".json") ? read_foreign_config(file) : ForeignConfig{};
      if (theirs.tool != "DeepSpeed") return file + ": is no configuration of DeepSpeed (JSON): the planner chooses";
      for (const std::string& setting : theirs.overrides)
        if (setting.starts_with("zero.") || setting.starts_with("offload.")) config.overrides.push_back(setting);
      return "its stage and offload are taken, as --from " + file + " translates them";
    }
  std::smatch found;
  if (!std::regex_search(name, found, stage)) return "a file of its own: the planner chooses the stage here";
  set(config, "zero.stage", found[1].str());
  return "is no file here, so the stage is taken from its name";
}

const KeyTable& axolotl_table() {
  const std::string trainer = "an implementation choice of axolotl's trainer; here kernels choose themselves",
                    layout = "the planner chooses the layout; for one of your own give --set ";
  static const KeyTable table{
      {"base_model", text_into(&ForeignConfig::model)},
      {"output_dir", text_into(&ForeignConfig::output_dir)},
      {"datasets", datasets_into},
      {"pretraining_dataset", datasets_into},
      {"test_datasets", validation_files_into},
      {"val_set_size", validation_into},
      {"chat_template", template_into},
      {"rl", preference_into},
      {"rl_beta", number("preference.beta")},
      {"trl.beta", absent("it is for GRPO, which is not there")},
      {"dpo_beta", number("preference.beta")},
      {"orpo_alpha", number("preference.beta")},
      {"rpo_alpha", likelihood_into},
      {"dpo_label_smoothing", number("preference.label_smoothing")},
      {"kto_desirable_weight", number("preference.desirable_weight")},
      {"kto_undesirable_weight", number("preference.undesirable_weight")},
      {"adapter", adapter_into},
      {"lora_model_dir", absent("give --set lora.adapter, a folder here")},
      {"sequence_len", number("training.seq_len")},
      {"micro_batch_size", number("training.local_batch_size")},
      {"eval_batch_size", absent("validation uses local_batch_size")},
      {"gradient_accumulation_steps", absent("with micro_batch_size and the ranks it makes the global batch")},
      {"num_epochs", epochs_into},
      {"epochs", misnamed("num_epochs")},
      {"num_train_epochs", misnamed("num_epochs")},
      {"lr", misnamed("learning_rate")},
      {"seq_len", misnamed("sequence_len")},
      {"sequence_length", misnamed("sequence_len")},
      {"max_seq_length", misnamed("sequence_len")},
      {"per_device_train_batch_size", misnamed("micro_batch_size")},
      {"model_name_or_path", misnamed("base_model")},
      {"lora_rank", misnamed("lora_r")},
      {"max_steps", max_steps_into},
      {"learning_rate", rate_into},
      {"optimizer", optimizer_into},
      {"lr_scheduler", scheduler({{"cosine", "cosine"},
                                  {"cosine_with_restarts", "cosine"},  // of one cycle, its default
                                  {"linear", "linear"},
                                  {"polynomial", "linear"},  // of power 1, its default
                                  {"constant", "constant"},
                                  {"constant_with_warmup", "constant"}})},
      {"warmup_steps", steps("lr_scheduler.warmup_steps")},
      {"warmup_ratio", warmup_into},
      {"cosine_min_lr_ratio", number("lr_scheduler.min_lr_ratio")},
      {"weight_decay", number("optimizer.weight_decay")},
      {"adam_beta1", betas_part(0)},
      {"adam_beta2", betas_part(1)},
      {"adam_epsilon", number("optimizer.eps")},
      {"adam_beta3", absent("CAME has three betas and is not there: give --set optimizer.name")},
      {"adam_epsilon2", absent("CAME is not there: give --set optimizer.name")},
      {"cpo_alpha", absent("CPO and SimPO are not there: --set preference.method has those that are")},
      {"fp8", absent("products in 8 bits are not there: bf16 counts")},
      {"max_grad_norm", number("training.max_norm")},
      {"bf16", precision("bf16")},
      {"fp16", precision("fp16")},
      {"tf32", absent("fp32 products may use it on GPUs by themselves")},
      {"lora_r", number("lora.r")},
      {"lora_alpha", number("lora.lora_alpha")},
      {"lora_dropout", number("lora.lora_dropout")},
      {"loraplus_lr_ratio", number("lora.loraplus_lr_ratio")},
      {"lora_target_linear", flag("lora.target_modules", "\"all-linear\"")},
      {"lora_target_modules", modules_into},
      {"lora_modules_to_save", saved_modules_into},
      {"peft_use_dora", flag("lora.use_dora", "true")},
      {"peft_use_rslora", flag("lora.use_rslora", "true")},
      {"load_in_4bit", flag("lora.quantization", "\"nf4\"")},
      {"load_in_8bit", flag("lora.quantization", "\"int8\"")},
      {"bnb_config_kwargs.bnb_4bit_use_double_quant", flag("lora.double_quantization", "true", "false")},
      {"gradient_checkpointing", flag("activation_checkpoint.mode", "\"full\"")},
      {"sample_packing", flag("data.packing", "true")},
      {"train_on_inputs", flag("data.train_on", "\"all\"", "\"assistant\"")},
      {"seed", number("training.seed")},
      {"save_steps", steps("checkpoint.interval")},
      {"saves_per_epoch", per_epoch("checkpoint.interval")},
      {"save_strategy", absent("give --set checkpoint.interval, in steps; 0 writes none")},
      {"save_total_limit", number("checkpoint.keep")},
      {"early_stopping_patience", number("training.patience")},
      {"load_best_model_at_end", flag("checkpoint.keep_best", "true")},
      {"logging_steps", steps("metrics.log_interval")},
      {"eval_steps", steps("training.validation_interval")},
      {"evals_per_epoch", per_epoch("training.validation_interval")},
      {"eval_strategy", absent("give --set training.validation_interval, in steps; 0 validates never")},
      {"resume_from_checkpoint", absent("zero_train --resume continues the newest checkpoint of the output directory")},
      {"flash_attention", absent(trainer)},
      {"sdp_attention", absent(trainer)},
      {"flex_attention", absent(trainer)},
      {"xformers_attention", absent(trainer)},
      {"attn_implementation", absent(trainer)},
      {"pad_to_sequence_len", absent("rows are padded to the longest beside them alone")},
      {"model_type", absent("config.json names the family")},
      {"tokenizer_type", absent("the tokenizer's files name its type")},
      {"dataset_prepared_path", absent("tokens are kept in token_cache of the output directory")},
      {"sequence_parallel_degree", shared_rows("", layout + "parallel.context")},
      {"context_parallel_size", shared_rows("", layout + "parallel.context")},
      {"tensor_parallel_size", shared_rows("", layout + "parallel.tensor")},
      {"fsdp", absent(layout + "zero.stage: full_shard is 3, shard_grad_op 2")},
      {"trust_remote_code",
       absent("a model's own code never runs here: its family must be known (docs/results/families.md)")},
      {"eval_sample_packing", absent("validation packs as training does")},
      {"remove_unused_columns", absent("docs/data.md has the keys of an example")},
      {"neftune_noise_alpha", absent("no noise is added to embeddings here")},
      {"unfrozen_parameters", absent("all parameters are trained here, or adapters alone")},
      {"group_by_length", absent("rows are shuffled here (data.shuffle)")},
      {"deepspeed", deepspeed_into},
  };
  return table;
}

const PrefixReasons& axolotl_prefixes() {
  const std::string trainer = "an implementation choice of axolotl's trainer; here kernels choose themselves",
                    records = "metrics.jsonl has each step's figures; --set metrics.trackio=PROJECT shows them";
  static const PrefixReasons reasons{
      {"flash_attn_", trainer},
      {"flex_attn_", trainer},
      {"liger_", trainer},
      {"plugins", trainer},
      {"unsloth_", trainer},
      {"lora_mlp_kernel", trainer},
      {"lora_qkv_kernel", trainer},
      {"lora_o_kernel", trainer},
      {"torch_compile", trainer},
      {"gradient_checkpointing_kwargs", trainer},
      {"dataloader_", trainer},
      {"dataset_processes", trainer},
      {"ddp_", trainer},
      {"fsdp_",
       "the planner chooses the layout; for one of your own give --set zero.stage and --set offload.parameters"},
      {"wandb_", records},
      {"mlflow_", records},
      {"comet_", records},
      {"swanlab_", records},
      {"special_tokens.", "the tokenizer's own files name its special tokens"},
      {"model_config.", "config.json of the model has its settings"},
      {"overrides_of_model_config.", "config.json of the model has its settings"},
      {"loss_watchdog_", "only losses that are no numbers stop a run (--set training.on_nonfinite)"},
      {"qat.", "no quantization-aware training is there: the run trains without it"},
      {"hub_", "the result stays in the output directory; hf upload sends it"},
  };
  return reasons;
}

/// axolotl's own defaults, for keys that the file leaves open or empty.
void add_axolotl_defaults(const Json& tree, ForeignConfig& config) {
  const auto is_open = [&](const char* key) { return !tree.contains(key) || tree[key].is_null(); };
  const bool chooses = !tree.contains("bf16");  // bf16 is "auto"
  if (!chooses) set_default(config, "training.precision", "\"fp32\"");
  const bool is_qlora = !is_open("adapter") && tree["adapter"] == "qlora";
  if (is_qlora) set_default(config, "lora.double_quantization", "true");
  if (is_open("optimizer")) set_default(config, "optimizer.name", "\"adamw\"");
  if (holds(config, "optimizer.name=\"sgd\"")) add_sgd_defaults(config);
  if (is_open("weight_decay")) set_default(config, "optimizer.weight_decay", "0.0");
  if (holds(config, "optimizer.name=\"muon\"") && !is_open("learning_rate"))
    set_default(config, "optimizer.lr_adamw", words_of(tree["learning_rate"]));
  if (is_open("lr_scheduler")) set_default(config, "lr_scheduler.type", "\"cosine\"");
  if (!is_open("lr_scheduler") && tree["lr_scheduler"] == "constant") {
    drop(config, "lr_scheduler.warmup_", "", "a constant rate has no warm-up, there too (constant_with_warmup has)");
    return set(config, "lr_scheduler.warmup_steps", "0");
  }
  if (is_open("warmup_steps") && is_open("warmup_ratio")) {
    if (config.steps > 0)
      set(config, "lr_scheduler.warmup_steps", text(std::min<std::int64_t>(config.steps * 3 / 100, 100)));
    else
      set(config, "lr_scheduler.warmup_ratio", "0.03");  // there at most 100 steps
  }
}

/// A configuration for another kind of training would train something else here.
void refuse_other_training(const Json& tree, const std::string& source) {
  for (const char* key : {"rl", "reward_model", "process_reward_model"}) {
    const auto found = tree.find(key);
    if (found == tree.end() || found->is_null() || *found == false || words_of(*found).empty()) continue;
    if (std::string_view(key) == "rl" && preference_methods().contains(words_of(*found))) continue;
    throw InputError(text(source, ": ", key, ": ", words_of(*found),
                          ": zero has no reward models, and of preference training DPO, IPO, ORPO and KTO; translate "
                          "such a configuration, or one for fine-tuning"));
  }
}

void refuse_contradictions(const Json& tree, const std::string& source) {
  const auto is = [&](const char* key, const Json& value) { return tree.contains(key) && tree[key] == value; };
  if (is("bf16", true) && is("fp16", true))
    throw InputError(source + ": bf16 and fp16 are both true: leave one of them on");
  if (is("load_in_8bit", true) && (is("load_in_4bit", true) || is("adapter", "qlora")))
    throw InputError(source + ": load_in_8bit is true, and the base is to have 4 bits (" +
                     (is("adapter", "qlora") ? "adapter: qlora" : "load_in_4bit") + "): leave one of them");
}

/// TRL adds the likelihood of chosen answers to the loss of either method.
void join_loss_terms(ForeignConfig& config) {
  if (!is_set(config, "preference.loss_weights")) return;
  const bool is_ipo = holds(config, "preference.loss_type=[\"ipo\"]");
  std::erase(config.overrides, "preference.loss_type=[\"ipo\"]");
  set_default(config, "preference.loss_type", is_ipo ? "[\"ipo\", \"sft\"]" : "[\"sigmoid\", \"sft\"]");
}

/// Keys that the method does not read would be refused.
void drop_other_preferences(ForeignConfig& config) {
  PreferenceSection preference;
  const std::string method = "preference.method=\"";
  bool found = false;
  for (const std::string& set : config.overrides)
    if (set.starts_with(method)) {
      preference.method = set.substr(method.size(), set.size() - method.size() - 1);
      found = true;
    }
  if (!found) return drop(config, "preference.", "", "there is no rl");
  drop(config, "data.train_on=", "train_on_inputs", "preferences count answers alone");
  drop(config, "data.packing=", "sample_packing", "a pair is a row of its own");
  for (const std::string& key : keys_of("preference"))
    if (!preference.reads(key))
      drop(config, "preference." + key, "", "is not for preference.method = \"" + preference.method + '"');
}

/// axolotl joins the two keys.
void join_lora_targets(const Json& tree, ForeignConfig& config) {
  const auto all = tree.find("lora_target_linear"), named = tree.find("lora_target_modules");
  if (all == tree.end() || *all != true || named == tree.end() || named->is_null()) return;
  drop(config, "lora.target_modules=", "lora_target_modules", "lora_target_linear includes all linear layers");
  set(config, "lora.target_modules", "\"all-linear\"");
}

/// 0 for a key that is open, empty or "auto".
double number_at(const Json& tree, const char* key, const std::string& source) {
  const auto found = tree.find(key);
  if (found == tree.end() || found->is_null() || words_of(*found).empty() || *found == "auto") return 0;
  try {
    return number_of(*found).get<double>();
  } catch (const InputError& error) {
    throw InputError(source + ": " + key + " " + error.what());
  }
}

}  // namespace
}  // namespace foreign

ForeignConfig translate_axolotl(const std::string& words, const std::string& source,
                                const std::vector<std::string>& given) {
  using namespace foreign;
  const Json tree = parse_yaml(words, source);
  if (!tree.is_object() ||
      !(tree.contains("base_model") || tree.contains("datasets") || tree.contains("pretraining_dataset")))
    throw InputError(source + ": has neither base_model nor datasets, so it is no configuration of axolotl");
  refuse_other_training(tree, source);
  refuse_contradictions(tree, source);
  ForeignConfig config;
  config.tool = "axolotl";
  config.source = source;
  config.given = given;
  config.packs = false;
  if (!is_set(config, "training.steps") && !is_set(config, "training.epochs")) {  // else shares are of that length
    config.steps = std::int64_t(std::clamp(number_at(tree, "max_steps", source), 0.0, 1e10));
    config.epochs = number_at(tree, "num_epochs", source);
  }
  walk(tree, "", axolotl_table(), config, [&](const std::string& path) {
    return why_absent(source, path, axolotl_table(), axolotl_prefixes(), {"axolotl", "Hugging Face"});
  });
  add_axolotl_defaults(tree, config);
  join_lora_targets(tree, config);
  config.rows_of_rank = std::int64_t(std::clamp(number_at(tree, "micro_batch_size", source), 0.0, 1e9)) *
                        std::int64_t(std::clamp(number_at(tree, "gradient_accumulation_steps", source), 1.0, 1e9));
  if (number_at(tree, "max_steps", source) > 0)
    drop(config, "training.epochs", "num_epochs", "max_steps counts, there too");
  join_loss_terms(config);
  drop_other_preferences(config);
  if (!config.lora) drop(config, "lora.", "", "there is no adapter");  // such keys alone would begin one
  drop_without_validation(config);
  finish(config);
  return config;
}

}  // namespace zero

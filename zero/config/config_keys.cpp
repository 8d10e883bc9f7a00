#include "zero/config/config_keys.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "base/time_span.h"
#include "models/model_config.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

// The field of a section; creates an optional section.
template <auto Section, auto Member>
Field at(Config& config) {
  auto& section = config.*Section;
  if constexpr (requires { section.emplace(); }) {
    if (!section) section.emplace();
    return &((*section).*Member);
  } else {
    return &(section.*Member);
  }
}

Rule anything() {
  return {"", [](const Value&) { return true; }};
}

template <class Accepts>
Rule number(const std::string& text, Accepts accepts) {
  return {text, [accepts](const Value& value) {
            if (auto* i = std::get_if<std::int64_t>(&value)) return accepts(static_cast<double>(*i));
            if (auto* d = std::get_if<double>(&value)) return accepts(*d);
            const auto& pair = std::get<std::array<double, 2>>(value);
            return accepts(pair[0]) && accepts(pair[1]);
          }};
}

Rule rule_of(const Bound& bound) { return number(bound.text, bound.accepts); }

Rule at_least(int low) {
  return number("at least " + std::to_string(low), [low](double x) { return x >= low; });
}
// Bounds keep products and casts of whole numbers exact: a run's sequences, steps x global_batch_size, stay below 2^63.
Rule between(std::int64_t low, std::int64_t high) { return rule_of(bounds::between(low, high)); }
Rule above_zero() { return rule_of(bounds::above_zero()); }
Rule zero_or_more() { return rule_of(bounds::not_negative()); }
Rule up_to(double high, const std::string& text) {
  return number("greater than 0 and at most " + text, [high](double x) { return x > 0 && x <= high; });
}
constexpr std::int64_t most_steps = 10'000'000'000, most_sequences = 10'000'000;
Rule zero_to_one() {
  return number("between 0 and 1", [](double x) { return x >= 0 && x <= 1; });
}
Rule below_one() { return rule_of(bounds::below_one()); }

Rule not_empty() {
  return {"not empty", [](const Value& value) {
            if (auto* list = std::get_if<std::vector<std::string>>(&value)) {
              for (const std::string& item : *list)
                if (item.empty()) return false;
              return !list->empty();
            }
            return !std::get<std::string>(value).empty();
          }};
}
Rule no_empty_name() {
  return {"a list without empty strings", [](const Value& value) {
            for (const std::string& item : std::get<std::vector<std::string>>(value))
              if (item.empty()) return false;
            return true;
          }};
}

Rule time_span() {
  return {"empty, or a time as \"90:00\" (minutes and seconds), \"12:00:00\" or \"2-12:00:00\" (days first)",
          [](const Value& value) {
            const auto& text = std::get<std::string>(value);
            return text.empty() || time_span_of(text);
          }};
}

// Trackio's rule for names (SQLiteStorage.validate_project_name of version 0.43): these beginnings and ends name other
// files of its own.
Rule trackio_project() {
  return {
      "empty, or a name of letters, digits, - and _ that does not begin with registry- and does not end with _system, "
      "_configs, _traces, _artifacts, _artifact_versions, _artifact_aliases or _run_artifact_links",
      [](const Value& value) {
        const auto& name = std::get<std::string>(value);
        const auto is_plain = [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        };
        if (!std::all_of(name.begin(), name.end(), is_plain) || name.starts_with("registry-")) return false;
        for (const char* end : {"_system", "_configs", "_traces", "_artifacts", "_artifact_versions",
                                "_artifact_aliases", "_run_artifact_links"})
          if (name.ends_with(end)) return false;
        return true;
      }};
}

// One of "a", "b" or "c", quoted as in the file.
Rule one_of(std::vector<std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + ('"' + names[i] + '"');
  return {text, [names](const Value& value) {
            for (const std::string& name : names)
              if (name == std::get<std::string>(value)) return true;
            return false;
          }};
}

std::string optimizer_docs() {
  std::string text = "The update rule.";
  for (const OptimizerRow& row : optimizer_table()) text += " " + row.name + ": " + row.doc + ".";
  return text;
}

// A setting's fields in a configuration.
Field field_of(const RuleSetting& setting, OptimizerConfig& config) {
  if (setting.fields.size() == 2) {
    const auto number = [&](std::size_t i) {
      return &(config.*std::get<double RuleSettings::*>(setting.fields[i].at));
    };
    return NumberPair{number(0), number(1)};
  }
  return std::visit([&](auto at) -> Field { return &(config.*at); }, setting.fields.front().at);
}

// The default of a rule where it is not that of every rule; else empty.
std::string own_default(const RuleSetting& setting, const OptimizerRow& row) {
  OptimizerConfig own, common;
  static_cast<RuleSettings&>(own) = row.defaults;
  const std::string is = toml_text(*read_field(field_of(setting, own)));
  return is == toml_text(*read_field(field_of(setting, common))) ? "" : is;
}

// "sgd, muon (0.95): of the gradients."; of a setting of every rule "On tensors of two or more dimensions. sgd: 0.0."
std::string docs_of(const RuleSetting& setting) {
  std::string before, after;
  for (const OptimizerRow& row : optimizer_table()) {
    if (!takes(row, setting)) continue;
    const std::string own = own_default(setting, row);
    before += (before.empty() ? "" : ", ") + row.name + (own.empty() ? "" : " (" + own + ")");
    if (!own.empty()) after += (after.empty() ? " " : ", ") + row.name + ": " + own;
  }
  if (setting.takers == Takers::named_rules) return before + ": " + setting.meaning;
  return setting.meaning + after + (after.empty() ? "" : ".");
}

ConfigKey key_of(const RuleSetting& setting) {
  Rule rule = setting.bound.text.empty() ? anything() : rule_of(setting.bound);
  if (setting.fields.size() == 2) rule.text = "two numbers, each " + rule.text;
  return {.section = "optimizer",
          .name = setting.key,
          .field = [&setting](Config& config) { return field_of(setting, config.optimizer); },
          .rule = rule,
          .doc = docs_of(setting),
          .may_change = setting.on_resume == OnResume::may_change};
}

// [optimizer]: what every rule takes stands before the types of states, what some take after them.
std::vector<ConfigKey> optimizer_keys() {
  using C = Config;
  using Optim = OptimizerConfig;
  std::vector<ConfigKey> keys{
      {"optimizer", "name", at<&C::optimizer, &Optim::name>, one_of(optimizer_names()), optimizer_docs()}};
  const auto add = [&](Takers takers) {
    for (const RuleSetting& setting : rule_settings())
      if (setting.takers == takers) keys.push_back(key_of(setting));
  };
  add(Takers::every_rule);
  keys.push_back(
      {"optimizer", "state_dtype", at<&C::optimizer, &Optim::state_dtype>, one_of({"fp32", "bf16"}),
       "Numbers that the optimizer keeps of each element. bf16: rounded up or down at random after each update; draws follow from "
       "training.seed, step and element, not from the layout. With adamw, sgd with momentum, lion, muon, or prodigy (all but p0)."});
  keys.push_back(
      {"optimizer", "master_dtype", at<&C::optimizer, &Optim::master_dtype>, one_of({"fp32", "split"}),
       "precision = \"bf16\": master weights. split: a weight and the 16 bits that it lacks of its master, 2 bytes a parameter "
       "less and exact. A weight is the nearest to its master, of two the one away from zero, where fp32 has the even one.",
       false, false, true});
  add(Takers::named_rules);
  return keys;
}

std::string preset_docs() {
  std::string text = "A Llama with random weights: ";
  for (const std::string& name : preset_names()) {
    const ModelConfig model = preset_config(name);
    text += (name == preset_names().front() ? "" : "; ") + name + " (vocab_size " + std::to_string(model.vocab_size) +
            ", hidden_size " + std::to_string(model.hidden_size) + ", " + std::to_string(model.num_hidden_layers) +
            " layers, context " + std::to_string(model.max_position_embeddings) + ")";
  }
  return text + ". Preset or path, not both. Any field of config.json may be given next to a preset by its own name.";
}

std::vector<ConfigKey> keys_before_optimizer() {
  using C = Config;
  using Job = JobConfig;
  using Model = ModelSection;
  using Data = DataConfig;
  using Train = TrainingConfig;
  return {
      {"job", "output_dir", at<&C::job, &Job::output_dir>, not_empty(),
       "Folder of everything the run writes: metrics.jsonl, config.toml (the resolved configuration), checkpoints/, "
       "token_cache/, model/ or adapter/.",
       true},
      {"job", "deterministic", at<&C::job, &Job::deterministic>, anything(),
       "GPU: repeats bit for bit, at some cost. The CPU path always does."},
      {"job", "reproducible", at<&C::job, &Job::reproducible>, one_of({"none", "ranks"}),
       "ranks: losses, weights and optimizer states are the same to the last bit with any number of ranks, at every stage, with "
       "any shard_degree, local_batch_size, offload and recomputation, and when the run goes on in another of these layouts. "
       "Costs some time and memory (docs/reproducibility.md). With adamw, adamw8bit, sgd or lion."},
      {"job", "reproducible_rows", at<&C::job, &Job::reproducible_rows>, between(1, 1'000'000),
       "reproducible = \"ranks\": sequences of a micro-batch, in the place of local_batch_size. Runs with another number are other "
       "runs."},
      {"job", "time_limit", at<&C::job, &Job::time_limit>, time_span(),
       "The time that the scheduler gives the job, from the start of zero_train. The run ends ahead of it, while there is time for "
       "a step and a checkpoint, with the checkpoint and exit code 75: go on with --resume. Empty: no limit."},

      {"model", "preset", at<&C::model, &Model::preset>, not_empty(), preset_docs()},
      {"model", "path", at<&C::model, &Model::path>, not_empty(),
       "A Hugging Face model directory: config.json, *.safetensors (one file or indexed shards), tokenizer files; or a GGUF "
       "file, which a frozen base is held as. For --dry-run config.json is enough, in a directory or named itself."},
      {"model", "allow_unused", at<&C::model, &Model::allow_unused>, anything(),
       "Leaves out tensors of the model's file that belong to its modules and that its configuration does not name; "
       "otherwise they are refused. `zero_train --allow-unused` sets it."},

      {"data", "train", at<&C::data, &Data::train>, not_empty(),
       "Files, joined in this order: .txt (each one document), .jsonl or .json (examples or conversations), .bin (raw "
       "little-endian token ids).",
       true},
      {"data", "validation", at<&C::data, &Data::validation>, no_empty_name(),
       "Files of the same kinds for validation_loss; needs training.validation_interval."},
      {"data", "tokenizer", at<&C::data, &Data::tokenizer>, anything(),
       "A tokenizer.json, a SentencePiece tokenizer.model, or a folder with one. Empty: the model's own. A preset needs one for text; .bin files need none."},
      {"data", "token_dtype", at<&C::data, &Data::token_dtype>, one_of({"uint16", "uint32"}),
       "Type of the ids in .bin files."},
      {"data", "shuffle", at<&C::data, &Data::shuffle>, anything(),
       "One permutation of the windows per epoch, from training.seed, the same on every platform."},
      {"data", "train_on", at<&C::data, &Data::train_on>, one_of({"assistant", "all"}),
       "Conversations: the text that the loss covers."},
      {"data", "packing", at<&C::data, &Data::packing>, anything(),
       "Conversations: several in one sequence, without attention across them; otherwise padding."},
      {"data", "overlong", at<&C::data, &Data::overlong>, one_of({"truncate", "drop"}),
       "Examples beyond seq_len: truncate cuts texts into windows and keeps the start of others, drop leaves them out."},
      {"data", "chat_template", at<&C::data, &Data::chat_template>, anything(),
       "Conversations: a known template's name, or a file with a Jinja template. Empty: the model directory's own."},

      {"training", "steps", at<&C::training, &Train::steps>, between(1, most_steps),
       "Optimizer steps. Steps or epochs, not both."},
      {"training", "epochs", at<&C::training, &Train::epochs>, up_to(1e6, "1000000"),
       "Passes over the data: floor(epochs x windows / global_batch_size) steps, at least one."},
      {"training", "seq_len", at<&C::training, &Train::seq_len>, between(1, 100'000'000),
       "Tokens in a sequence; at most the model's context.", true},
      {"training", "local_batch_size", at<&C::training, &Train::local_batch_size>, between(1, 1'000'000),
       "Sequences in one micro-batch of one rank."},
      {"training", "global_batch_size", at<&C::training, &Train::global_batch_size>, between(1, most_sequences),
       "Sequences in a step of all ranks: a multiple of local_batch_size x ranks, and that when absent. What one "
       "pass cannot hold is gradient accumulation."},
      {"training", "max_norm", at<&C::training, &Train::max_norm>, zero_or_more(),
       "Global L2 norm that gradients are clipped to; 0 switches it off."},
      {"training", "precision", at<&C::training, &Train::precision>, one_of({"fp32", "bf16", "fp16"}),
       "Compute type. Master weights and moments are fp32, unless [optimizer] stores them otherwise. fp16 skips steps whose gradients overflow; a run that skips all of "
       "them, or ends with a loss that is not finite, fails and writes no model."},
      {"training", "device", at<&C::training, &Train::device>, one_of({"auto", "cpu", "cuda"}),
       "Where the model runs."},
      {"training", "seed", at<&C::training, &Train::seed>, at_least(0), "Of start weights, data order and dropout."},
      {"training", "validation_interval", at<&C::training, &Train::validation_interval>, between(0, most_steps),
       "Steps between validations, and one after the last step; 0: never, and data.validation is not read. Must be given with data.validation."},
      {"training", "on_nonfinite", at<&C::training, &Train::on_nonfinite>, one_of({"stop", "skip", "rollback"}),
       "A step whose loss or gradients hold an infinity or a NaN: ends the run; is skipped; or sends the run back to its newest "
       "checkpoint, after which the step is passed over. Overflows that a lower loss scale of fp16 mends do not count."},
      {"training", "max_skipped_steps", at<&C::training, &Train::max_skipped_steps>, between(1, most_steps),
       "on_nonfinite = \"skip\": steps in a row that are skipped; one more ends the run."},
      {"training", "max_rollbacks", at<&C::training, &Train::max_rollbacks>, between(1, most_steps),
       "on_nonfinite = \"rollback\": times that the run goes back before it has written a checkpoint beyond the step that "
       "failed; once more ends it."},
  };
}

std::vector<ConfigKey> keys_after_optimizer() {
  using C = Config;
  using Sched = SchedulerConfig;
  using Check = CheckpointingConfig;
  using Lora = LoraSection;
  return {
      {"lr_scheduler", "type", at<&C::lr_scheduler, &Sched::type>, one_of({"constant", "linear", "cosine", "wsd"}),
       "Shape after the warm-up."},
      {"lr_scheduler", "warmup_steps", at<&C::lr_scheduler, &Sched::warmup_steps>, between(0, most_steps),
       "Steps of linear warm-up; at most the steps of the run, also where epochs decide them."},
      {"lr_scheduler", "min_lr_ratio", at<&C::lr_scheduler, &Sched::min_lr_ratio>, zero_to_one(),
       "The rate that the schedule falls to, as a part of lr. It gets there one step after the last, as transformers' schedules "
       "do: the last step's rate is a little higher. linear, 25 steps, 5 of them warm-up, 0.1: 0.145 lr."},
      {"lr_scheduler", "decay_ratio", at<&C::lr_scheduler, &Sched::decay_ratio>, zero_to_one(),
       "wsd: the last part of the steps."},

      {"zero", "stage", at<&C::zero, &ZeroConfig::stage>,
       number("0, 1, 2 or 3", [](double x) { return x >= 0 && x <= 3; }),
       "Sharded over the ranks: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too."},
      {"zero", "shard_degree", at<&C::zero, &ZeroConfig::shard_degree>, between(0, 1'000'000),
       "Ranks in a sharding group (hybrid sharding), a divisor of the number of ranks; 0: all."},
      {"zero", "reduce_dtype", at<&C::zero, &ZeroConfig::reduce_dtype>, one_of({"fp32"}),
       "Ranks are summed in it and rounded once; inside a node gradients travel in the type they have."},
      {"zero", "gradient_dtype", at<&C::zero, &ZeroConfig::gradient_dtype>, one_of({"auto", "fp32", "bf16"}),
       "Gradients at rest. auto: the compute type with one micro-batch a step, fp32 when accumulating."},
      {"zero", "frozen", at<&C::zero, &ZeroConfig::frozen>, one_of({"shard", "keep"}),
       "Frozen weights at stage 3: gathered like all, or kept whole."},

      {"parallel", "tensor", at<&C::parallel, &ParallelConfig::tensor>, between(1, 1024),
       "Ranks that share each matrix and the tokens of a micro-batch (tensor and sequence parallelism, docs/parallel.md). It "
       "divides the number of ranks and the model's heads. The other ranks share the data."},
      {"parallel", "context", at<&C::parallel, &ParallelConfig::context>, between(1, 1024),
       "Ranks that share the tokens of each row (DeepSpeed-Ulysses, docs/parallel.md), for long rows. tensor x context divides "
       "the number of ranks and the model's heads."},
      {"parallel", "pipeline", at<&C::parallel, &ParallelConfig::pipeline>, between(1, 1024),
       "Stages that the blocks of the model are dealt out to (docs/parallel.md). Micro-batches of a step pass them one after "
       "the other, so a step needs several. pipeline x tensor x context divides the number of ranks."},
      {"parallel", "schedule", at<&C::parallel, &ParallelConfig::schedule>, one_of({"1f1b", "gpipe", "interleaved"}),
       "The order of a pipeline's micro-batches. 1f1b: few are alive at once. interleaved: each stage has several runs of "
       "blocks, so stages wait less and send more. gpipe: all forwards come first."},
      {"parallel", "chunks", at<&C::parallel, &ParallelConfig::chunks>, between(2, 1024),
       "Runs of blocks on each stage, for schedule = \"interleaved\"."},
      {"parallel", "regather", at<&C::parallel, &ParallelConfig::regather>, anything(),
       "Allow zero.stage = 3 with a pipeline, whose stages then gather their weights again for every micro-batch."},

      {"comm", "deadline_seconds", at<&C::comm, &CommConfig::deadline_seconds>, up_to(1e8, "100000000"),
       "A collective that takes longer ends the job."},
      {"comm", "shared_memory", at<&C::comm, &CommConfig::shared_memory>, one_of({"auto", "on", "off"}),
       "Windows shared by the ranks of a node."},
      {"comm", "ranks_per_gpu", at<&C::comm, &CommConfig::ranks_per_gpu>, between(1, 1024),
       "Ranks that may share a GPU."},

      {"activation_checkpoint", "mode", at<&C::activation_checkpoint, &Check::mode>,
       one_of({"none", "full", "selective", "attention"}),
       "Recomputed in backward: nothing, every block, every k-th block, or the attention half of every block."},
      {"activation_checkpoint", "every", at<&C::activation_checkpoint, &Check::every>, between(1, 65536),
       "selective: every k-th block."},
      {"activation_checkpoint", "keep", at<&C::activation_checkpoint, &Check::keep>, one_of({"auto", "on", "off"}),
       "Keeps the outputs of norms and activation functions instead of recomputing them in backward. auto: on a GPU, "
       "where it fits."},
      {"activation_checkpoint", "mlp_tokens", at<&C::activation_checkpoint, &Check::mlp_tokens>,
       between(0, std::int64_t{1} << 40),
       "Long rows: a block's MLP takes so many of a micro-batch's tokens at a time, and backward runs each tile again. 0: all "
       "at once. Without parallel.tensor."},

      {"offload", "optimizer", at<&C::offload, &OffloadConfig::optimizer>, one_of({"none", "cpu", "nvme"}),
       "Where master weights and moments live, and where they are updated. On a CPU run \"cpu\" is what \"none\" is."},
      {"offload", "parameters", at<&C::offload, &OffloadConfig::parameters>, one_of({"none", "cpu", "nvme"}),
       "Where parameter shards live; stage 3, on a GPU only with an offloaded optimizer."},
      {"offload", "activations", at<&C::offload, &OffloadConfig::activations>, one_of({"none", "cpu"}),
       "Where the inputs of recomputed blocks wait for backward; with activation_checkpoint.mode \"full\" or \"selective\". "
       "On a CPU run \"cpu\" is what \"none\" is."},
      {"offload", "nvme_dir", at<&C::offload, &OffloadConfig::nvme_dir>, anything(), "Folder of the nvme files."},

      {"lora", "r", at<&C::lora, &Lora::r>, between(1, 65536),
       "Rank of the adapters. The section's presence switches LoRA on."},
      {"lora", "lora_alpha", at<&C::lora, &Lora::lora_alpha>, above_zero(),
       "The adapter's product is scaled by lora_alpha / r."},
      {"lora", "lora_dropout", at<&C::lora, &Lora::lora_dropout>, below_one(), "On the adapter's input."},
      {"lora", "target_modules", at<&C::lora, &Lora::target_modules>, not_empty(),
       "Linear layers of the blocks, by the ends of their names, or \"all-linear\"."},
      {"lora", "use_rslora", at<&C::lora, &Lora::use_rslora>, anything(), "Scales by lora_alpha / sqrt(r) instead."},
      {"lora", "init_lora_weights", at<&C::lora, &Lora::init_lora_weights>, one_of({"true", "gaussian", "pissa"}),
       "Start values of the adapters.", false, true},
      {"lora", "modules_to_save", at<&C::lora, &Lora::modules_to_save>, no_empty_name(),
       "Modules trained and saved whole, by the ends of their names: embed_tokens, lm_head, norm (every norm), model.norm."},
      {"lora", "use_dora", at<&C::lora, &Lora::use_dora>, anything(), "Weight-decomposed adapters."},
      {"lora", "loraplus_lr_ratio", at<&C::lora, &Lora::loraplus_lr_ratio>, above_zero(),
       "LoRA+: learning rate of B over that of A."},
      {"lora", "adapter", at<&C::lora, &Lora::adapter>, anything(),
       "A PEFT directory to start from, or the folder of a run that made one: its adapter_config.json decides, and keys "
       "also given here must agree."},
      {"lora", "quantization", at<&C::lora, &Lora::quantization>, one_of({"none", "int8", "nf4"}),
       "Of the frozen base: matrices of the blocks in 8.5 (int8: Q8_0) or 4.5 bits an element (nf4: QLoRA), at every "
       "stage."},
      {"lora", "double_quantization", at<&C::lora, &Lora::double_quantization>, anything(),
       "nf4: the scales take 8 bits too; 4.13 bits an element."},

      {"checkpoint", "interval", at<&C::checkpoint, &CheckpointConfig::interval>, between(0, most_steps),
       "Steps between checkpoints; there is one at the end too. 0: none, but where a signal stops the run."},
      {"checkpoint", "every_minutes", at<&C::checkpoint, &CheckpointConfig::every_minutes>,
       number("between 0 and 1000000", [](double x) { return x >= 0 && x <= 1e6; }),
       "Minutes between checkpoints, in addition to those of interval. One is written after the step in which they elapse, and at the end. 0: none."},
      {"checkpoint", "keep", at<&C::checkpoint, &CheckpointConfig::keep>, between(1, 1'000'000'000),
       "Newest checkpoints that stay. The disk needs room for one more."},
      {"checkpoint", "asynchronous", at<&C::checkpoint, &CheckpointConfig::asynchronous>, anything(),
       "Steps wait only for a copy of the rank's part of the states in memory, and it is written while training goes on. "
       "The copy takes as much memory as the part does on the disk (AdamW: 12 bytes a parameter / ranks)."},
      {"checkpoint", "export_dtype", at<&C::checkpoint, &CheckpointConfig::export_dtype>,
       one_of({"auto", "fp32", "bf16", "fp16"}),
       "Type of the weights in model/ at the end. auto: that of the model at model.path as it is stored (of a quantised "
       "GGUF file bf16); fp32 for a preset, and where training.precision is \"fp32\"."},

      {"metrics", "log_interval", at<&C::metrics, &MetricsConfig::log_interval>, between(1, most_steps),
       "Steps between objects in metrics.jsonl."},
      {"metrics", "tensorboard", at<&C::metrics, &MetricsConfig::tensorboard>, anything(),
       "Writes the same figures to event files in tb/ of the output directory, for tensorboard --logdir."},
      {"metrics", "trackio", at<&C::metrics, &MetricsConfig::trackio>, trackio_project(),
       "A project: writes the same figures to its database, PROJECT.db in the environment's TRACKIO_DIR, or else in "
       "trackio/ of the output directory, for trackio show --project PROJECT."},
      {"metrics", "dump_first_step", at<&C::metrics, &MetricsConfig::dump_first_step>, anything(),
       "A safetensors file to write step 1 to, in fp32: \"logits\" [global batch, longest row, vocab] in the order of rows, shorter "
       "rows filled up with zeros, \"loss\" [], and \"grad.NAME\" before clipping."},
  };
}

std::vector<ConfigKey> make_keys() {
  std::vector<ConfigKey> keys = keys_before_optimizer();
  for (const auto& more : {optimizer_keys(), keys_after_optimizer()}) keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

}  // namespace

const std::vector<GroupKey>& group_keys() {
  using Group = OptimizerGroup;
  static const std::vector<GroupKey> keys{
      {"match", [](Group& group) -> Field { return &group.match; }, not_empty()},
      {"optimizer", [](Group& group) -> Field { return &group.optimizer; }, one_of(optimizer_names())},
      {"lr", [](Group& group) -> Field { return &group.lr; }, zero_or_more()},
      {"lr_adamw", [](Group& group) -> Field { return &group.lr_adamw; }, zero_or_more()},
      {"weight_decay", [](Group& group) -> Field { return &group.weight_decay; }, zero_or_more()}};
  return keys;
}

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys())
    if (names.empty() || names.back() != key.section) names.push_back(key.section);
  return names;
}

std::vector<std::string> keys_of(const std::string& section) {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys())
    if (key.section == section) names.push_back(key.name);
  if (section == "optimizer") names.emplace_back("group");
  return names;
}

std::vector<std::string> group_key_names() {
  std::vector<std::string> names;
  for (const GroupKey& key : group_keys()) names.push_back(key.name);
  return names;
}

std::string section_with(const std::string& name) {
  for (const ConfigKey& key : config_keys())
    if (key.name == name) return key.section;
  return "";
}

}  // namespace zero

#include "zero/config/config_keys.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "base/time_span.h"
#include "models/loss/dpo_loss.h"
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
// Bounds keep products and casts of integers exact: a run's number of sequences, steps x global_batch_size, stays below
// 2^63.
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

Rule weight_list() {
  return {"a list of numbers above 0 and at most 1e12", [](const Value& value) {
            return std::ranges::all_of(std::get<std::vector<double>>(value),
                                       [](double x) { return x > 0 && x <= 1e12; });
          }};
}

Rule step_range() {
  return {"two steps, from 1, the first of them not after the second; [0, 0]: none", [](const Value& value) {
            const auto [first, last] = std::get<std::array<double, 2>>(value);
            const bool whole = first == std::floor(first) && last == std::floor(last);
            return whole && first <= last && last <= double(most_steps) && (first >= 1 || (first == 0 && last == 0));
          }};
}

Rule time_span() {
  return {"empty, or a time such as \"90:00\" (minutes and seconds), \"12:00:00\" or \"2-12:00:00\" (days first)",
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

// A list whose strings are all in `names`.
Rule each_of(const std::vector<std::string>& names) {
  const Rule one = one_of(names);
  return {"a list of " + one.text, [one](const Value& value) {
            const auto& list = std::get<std::vector<std::string>>(value);
            return !list.empty() &&
                   std::ranges::all_of(list, [&](const std::string& item) { return one.accepts(item); });
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

// Returns an optimizer's own default if it differs from the common default; otherwise empty.
std::string own_default(const RuleSetting& setting, const OptimizerRow& row) {
  OptimizerConfig own, common;
  static_cast<RuleSettings&>(own) = row.defaults;
  const std::string is = toml_text(*read_field(field_of(setting, own)));
  return is == toml_text(*read_field(field_of(setting, common))) ? "" : is;
}

// "sgd, muon (0.95): decay rate of the sum of gradients."; a setting of every rule: "Peak learning rate. prodigy: 1.0."
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

// [optimizer]: keys of every optimizer come before the types of states, keys of only some optimizers after them.
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
       "Type of the states that the optimizer keeps for each element. bf16: they are rounded stochastically after "
       "each update; the random numbers depend on training.seed, step and element, but not on the layout. Works with "
       "adamw, sgd with momentum, lion, muon, and prodigy (except p0)."});
  keys.push_back(
      {"optimizer", "master_dtype", at<&C::optimizer, &Optim::master_dtype>, one_of({"fp32", "split"}),
       "Type of the master weights; split requires precision = \"bf16\". split: the bf16 weight and the other 16 bits "
       "of its master, which saves 2 bytes per parameter and loses nothing. With split, ties round away from zero; "
       "with fp32, to even.",
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
  return text +
         ". Or the path of a config.json of any supported family, whose model begins with random weights. Preset or "
         "path, not both. A preset accepts every field of config.json as a key of this section, except for dropout, which has the "
         "keys below.";
}

std::vector<ConfigKey> keys_before_optimizer() {
  using C = Config;
  using Job = JobConfig;
  using Model = ModelSection;
  using Data = DataConfig;
  using Train = TrainingConfig;
  return {
      {"job", "output_dir", at<&C::job, &Job::output_dir>, not_empty(),
       "Folder for all files of the run: metrics.jsonl, config.toml (the resolved configuration), checkpoints/, "
       "token_cache/, model/ or adapter/.",
       true},
      {"job", "deterministic", at<&C::job, &Job::deterministic>, anything(),
       "On a GPU, repeated runs give the same bits, but are slower. CPU runs always repeat bit for bit."},
      {"job", "reproducible", at<&C::job, &Job::reproducible>, one_of({"none", "ranks"}),
       "ranks: losses, weights and optimizer states have the same bits with any number of ranks, at every stage, with "
       "any shard_degree, local_batch_size, offload and recomputation, and after a run resumes in another of these "
       "layouts. This costs time and memory (docs/reproducibility.md). Works with adamw, adamw8bit, sgd and lion."},
      {"job", "reproducible_rows", at<&C::job, &Job::reproducible_rows>, between(1, 1'000'000),
       "With reproducible = \"ranks\": sequences per micro-batch, instead of local_batch_size. A different number gives "
       "different results."},
      {"job", "time_limit", at<&C::job, &Job::time_limit>, time_span(),
       "The time that the scheduler gives the job, counted from the start of zero_train. The run stops early enough "
       "to write a checkpoint, and exits with code 75; continue it with --resume. Empty: no limit."},

      {"model", "preset", at<&C::model, &Model::preset>, not_empty(), preset_docs()},
      {"model", "path", at<&C::model, &Model::path>, not_empty(),
       "A Hugging Face model directory: config.json, *.safetensors (one file or indexed shards), tokenizer files. Or "
       "a GGUF file; a frozen base keeps the file's types. --dry-run needs only config.json, in a directory or as the "
       "path itself."},
      {"model", "embedding_dropout", at<&C::model, &Model::embedding_dropout>, below_one(),
       "Share of the elements that training drops after the embedding and its positions. Default: as config.json has it "
       "(embd_pdrop, embedding_dropout), but 0 with [preference], as in TRL. Validation and generation drop nothing."},
      {"model", "attention_dropout", at<&C::model, &Model::attention_dropout>, below_one(),
       "Share of attention's probabilities that training drops. Default: as for embedding_dropout (attn_pdrop, "
       "attention_dropout). On GPUs it needs slower attention by explicit products."},
      {"model", "residual_dropout", at<&C::model, &Model::residual_dropout>, below_one(),
       "Share of the elements that training drops from what attention and the MLP add to the residual stream. Default: "
       "as for embedding_dropout (resid_pdrop, residual_dropout)."},
      {"model", "allow_unused", at<&C::model, &Model::allow_unused>, anything(),
       "Ignore tensors of the model's file that belong to its modules but that its configuration does not mention. If "
       "false, a file with such tensors is refused. `zero_train --allow-unused` sets this key."},

      {"data", "train", at<&C::data, &Data::train>, not_empty(),
       "Files, joined in this order: .txt (each one document), .jsonl or .json (examples or conversations), .bin (raw "
       "little-endian token ids).",
       true},
      {"data", "weights", at<&C::data, &Data::weights>, weight_list(),
       "A weight for each file of data.train, relative to each other: [7, 3] takes 70 % of the rows from the first file. "
       "A small file repeats, shuffled anew, and an epoch is still as many rows as all files have (docs/data.md). []: "
       "the files are joined."},
      {"data", "validation", at<&C::data, &Data::validation>, no_empty_name(),
       "Files of the same kinds for the validation loss; requires training.validation_interval."},
      {"data", "validation_fraction", at<&C::data, &Data::validation_fraction>,
       number("at least 0 and at most 0.5", [](double x) { return x >= 0 && x <= 0.5; }),
       "Instead of data.validation: the share of the rows of data.train that is held out for the validation loss, evenly "
       "over the files. 0: none."},
      {"data", "tokenizer", at<&C::data, &Data::tokenizer>, anything(),
       "A tokenizer.json, a SentencePiece tokenizer.model, or a folder with one. Empty: the model's own. A preset "
       "needs a tokenizer for text; .bin files need none."},
      {"data", "token_dtype", at<&C::data, &Data::token_dtype>, one_of({"uint16", "uint32"}),
       "Type of the ids in .bin files."},
      {"data", "shuffle", at<&C::data, &Data::shuffle>, anything(),
       "Permute the windows in each epoch. The order depends only on training.seed and the epoch, and is the same on "
       "every platform."},
      {"data", "train_on", at<&C::data, &Data::train_on>, one_of({"assistant", "all"}),
       "In conversations, the text that the loss covers."},
      {"data", "packing", at<&C::data, &Data::packing>, anything(),
       "Put several conversations into one sequence, without attention between them. If false, each conversation is "
       "a row, as long as itself or as the longest beside it."},
      {"data", "overlong", at<&C::data, &Data::overlong>, one_of({"truncate", "drop"}),
       "Examples longer than seq_len. truncate: texts are split into windows; other examples keep only their start. "
       "drop: the whole example is dropped."},
      {"data", "chat_template", at<&C::data, &Data::chat_template>, anything(),
       "Conversations: the name of a built-in template, or a file with a Jinja template. Empty: the model directory's "
       "own."},

      {"training", "steps", at<&C::training, &Train::steps>, between(1, most_steps),
       "Optimizer steps. Steps or epochs, not both."},
      {"training", "epochs", at<&C::training, &Train::epochs>, up_to(1e6, "1000000"),
       "Passes over the data: floor(epochs x windows / global_batch_size) steps, at least one."},
      {"training", "seq_len", at<&C::training, &Train::seq_len>, between(1, 100'000'000),
       "Tokens in a sequence; at most the model's context.", true},
      {"training", "local_batch_size", at<&C::training, &Train::local_batch_size>, between(1, 1'000'000),
       "Sequences in one micro-batch of one rank."},
      {"training", "global_batch_size", at<&C::training, &Train::global_batch_size>, between(1, most_sequences),
       "Sequences in a step of all ranks: a multiple of local_batch_size x ranks, which is the default. For larger "
       "multiples gradients are accumulated."},
      {"training", "max_norm", at<&C::training, &Train::max_norm>, zero_or_more(),
       "Global L2 norm to which gradients are clipped; 0 switches clipping off."},
      {"training", "precision", at<&C::training, &Train::precision>, one_of({"fp32", "bf16", "fp16"}),
       "Compute type. Master weights and moments are fp32, unless [optimizer] changes this. fp16 skips steps whose "
       "gradients overflow. If a run skips all steps, or its last loss is not finite, it fails and writes no model."},
      {"training", "matmul_precision", at<&C::training, &Train::matmul_precision>,
       one_of({"highest", "high", "medium"}),
       "Matrix products of an fp32 run, as in PyTorch. highest: fp32. high: on CPUs with AMX a number is the sum of two "
       "bf16 numbers (error 5e-6 of the largest entry), on GPUs TF32. medium: on CPUs rounded to bf16 where the processor is faster with it (error 3e-3), on "
       "GPUs TF32."},
      {"training", "device", at<&C::training, &Train::device>, one_of({"auto", "cpu", "cuda"}),
       "Where the model runs."},
      {"training", "seed", at<&C::training, &Train::seed>, at_least(0),
       "Seed of initial weights, data order and "
       "dropout."},
      {"training", "validation_interval", at<&C::training, &Train::validation_interval>, between(0, most_steps),
       "Steps between validations; there is also one after the last step. 0: no validation, and data.validation is "
       "not read. Required with data.validation."},
      {"training", "patience", at<&C::training, &Train::patience>, between(0, 1'000'000),
       "End the run after this many validations in a row without a lower loss. 0: train all steps."},
      {"training", "on_nonfinite", at<&C::training, &Train::on_nonfinite>, one_of({"stop", "skip", "rollback"}),
       "Reaction to an infinity or a NaN in the loss or gradients of a step. stop: end the run. skip: skip the step. "
       "rollback: return to the newest checkpoint and skip the step from there. Overflows that a lower fp16 loss "
       "scale avoids do not count."},
      {"training", "max_skipped_steps", at<&C::training, &Train::max_skipped_steps>, between(1, most_steps),
       "With on_nonfinite = \"skip\": the number of consecutive steps that may be skipped; one more ends the run."},
      {"training", "max_rollbacks", at<&C::training, &Train::max_rollbacks>, between(1, most_steps),
       "With on_nonfinite = \"rollback\": the number of rollbacks before the run writes a checkpoint beyond the "
       "failed step; one more ends the run."},
  };
}

std::vector<ConfigKey> keys_after_optimizer() {
  using C = Config;
  using Sched = SchedulerConfig;
  using Check = CheckpointingConfig;
  using Lora = LoraSection;
  using Preference = PreferenceSection;
  return {
      {"lr_scheduler", "type", at<&C::lr_scheduler, &Sched::type>, one_of({"constant", "linear", "cosine", "wsd"}),
       "Shape after the warm-up."},
      {"lr_scheduler", "warmup_steps", at<&C::lr_scheduler, &Sched::warmup_steps>, between(0, most_steps),
       "Steps of linear warm-up; at most the number of steps in the run, even if that number follows from epochs."},
      {"lr_scheduler", "warmup_ratio", at<&C::lr_scheduler, &Sched::warmup_ratio>, zero_to_one(),
       "Instead of warmup_steps: the share of the run's steps in the warm-up, rounded up to whole steps."},
      {"lr_scheduler", "min_lr_ratio", at<&C::lr_scheduler, &Sched::min_lr_ratio>, zero_to_one(),
       "The final learning rate of the schedule as a fraction of lr. As in transformers' schedules, it is reached one "
       "step after the last, so the last step's rate is slightly higher. Example: with type = \"linear\", 25 steps, "
       "warmup_steps = 5 and a ratio of 0.1, the last rate is 0.145 lr."},
      {"lr_scheduler", "decay_ratio", at<&C::lr_scheduler, &Sched::decay_ratio>, zero_to_one(),
       "wsd: the fraction of all steps, at the end, in which the rate decays."},

      {"zero", "stage", at<&C::zero, &ZeroConfig::stage>,
       number("0, 1, 2 or 3", [](double x) { return x >= 0 && x <= 3; }),
       "States that are sharded over the ranks. 0: none. 1: optimizer state. 2: gradients too. 3: parameters too."},
      {"zero", "shard_degree", at<&C::zero, &ZeroConfig::shard_degree>, between(0, 1'000'000),
       "Ranks in a sharding group (hybrid sharding), a divisor of the number of ranks; 0: all."},
      {"zero", "reduce_dtype", at<&C::zero, &ZeroConfig::reduce_dtype>, one_of({"fp32"}),
       "Type in which gradients are summed over ranks, before they are rounded once. Inside a node gradients are sent "
       "in their own type."},
      {"zero", "gradient_dtype", at<&C::zero, &ZeroConfig::gradient_dtype>, one_of({"auto", "fp32", "bf16"}),
       "Type of stored gradients. auto: the compute type with one micro-batch per step, fp32 with several."},
      {"zero", "frozen", at<&C::zero, &ZeroConfig::frozen>, one_of({"shard", "keep"}),
       "Frozen weights at stage 3. shard: they are sharded and gathered like all others. keep: each rank keeps all of "
       "them."},

      {"parallel", "tensor", at<&C::parallel, &ParallelConfig::tensor>, between(1, 1024),
       "Ranks that share each matrix and the tokens of a micro-batch (tensor and sequence parallelism, "
       "docs/parallel.md). It must divide the number of ranks, of attention heads and of key-value heads. The other "
       "ranks share the data."},
      {"parallel", "context", at<&C::parallel, &ParallelConfig::context>, between(1, 1024),
       "Ranks that share the tokens of each row (DeepSpeed-Ulysses, docs/parallel.md), for long rows. tensor x "
       "context must divide the number of ranks, and must not exceed the number of attention heads."},
      {"parallel", "pipeline", at<&C::parallel, &ParallelConfig::pipeline>, between(1, 1024),
       "Stages over which the blocks of the model are distributed (docs/parallel.md). The micro-batches of a step "
       "pass through the stages one after the other, so a step needs several. pipeline x tensor x context must divide "
       "the number of ranks."},
      {"parallel", "schedule", at<&C::parallel, &ParallelConfig::schedule>, one_of({"1f1b", "gpipe", "interleaved"}),
       "The order of a pipeline's micro-batches. 1f1b: few are in memory at once. interleaved: each stage has several "
       "groups of consecutive blocks, so stages wait less and send more. gpipe: all forwards come first."},
      {"parallel", "chunks", at<&C::parallel, &ParallelConfig::chunks>, between(2, 1024),
       "Groups of consecutive blocks on each stage, for schedule = \"interleaved\"."},
      {"parallel", "regather", at<&C::parallel, &ParallelConfig::regather>, anything(),
       "Allow zero.stage = 3 with a pipeline, whose stages then gather their weights again for every micro-batch."},

      {"comm", "deadline_seconds", at<&C::comm, &CommConfig::deadline_seconds>, up_to(1e8, "100000000"),
       "If a collective takes longer, the job ends."},
      {"comm", "shared_memory", at<&C::comm, &CommConfig::shared_memory>, one_of({"auto", "on", "off"}),
       "Communication through shared memory between the ranks of a node."},
      {"comm", "ranks_per_gpu", at<&C::comm, &CommConfig::ranks_per_gpu>, between(1, 1024),
       "Ranks that may share a GPU."},

      {"activation_checkpoint", "mode", at<&C::activation_checkpoint, &Check::mode>,
       one_of({"none", "full", "selective", "attention"}),
       "What is recomputed in backward. none: nothing. full: every block. selective: every k-th block. attention: the "
       "attention half of every block."},
      {"activation_checkpoint", "every", at<&C::activation_checkpoint, &Check::every>, between(1, 65536),
       "With mode = \"selective\": k. Every k-th block is recomputed."},
      {"activation_checkpoint", "keep", at<&C::activation_checkpoint, &Check::keep>, one_of({"auto", "on", "off"}),
       "Keep the outputs of norms and activation functions instead of recomputing them in backward. auto: on a GPU, "
       "if they fit into memory."},
      {"activation_checkpoint", "mlp_tokens", at<&C::activation_checkpoint, &Check::mlp_tokens>,
       between(0, std::int64_t{1} << 40),
       "For long rows: a block's MLP processes this many tokens of a micro-batch at a time, and backward computes "
       "each tile again. 0: all tokens at once. Cannot be combined with parallel.tensor."},

      {"offload", "optimizer", at<&C::offload, &OffloadConfig::optimizer>, one_of({"none", "cpu", "nvme"}),
       "Where master weights and moments live and are updated. On a CPU run \"cpu\" is the same as \"none\"."},
      {"offload", "parameters", at<&C::offload, &OffloadConfig::parameters>, one_of({"none", "cpu", "nvme"}),
       "Where parameter shards live. Requires stage 3, and on a GPU an offloaded optimizer."},
      {"offload", "activations", at<&C::offload, &OffloadConfig::activations>, one_of({"none", "cpu"}),
       "Where the inputs of recomputed blocks are kept until backward. Requires activation_checkpoint.mode \"full\" "
       "or \"selective\". On a CPU run \"cpu\" is the same as \"none\"."},
      {"offload", "nvme_dir", at<&C::offload, &OffloadConfig::nvme_dir>, anything(),
       "Folder of the nvme files. The run makes it, but not the folders above it."},

      {"lora", "r", at<&C::lora, &Lora::r>, between(1, 65536),
       "Rank of the adapters. LoRA is on if the section is present."},
      {"lora", "lora_alpha", at<&C::lora, &Lora::lora_alpha>, above_zero(),
       "The adapter's product is scaled by lora_alpha / r."},
      {"lora", "lora_dropout", at<&C::lora, &Lora::lora_dropout>, below_one(), "Dropout of the adapter's input."},
      {"lora", "target_modules", at<&C::lora, &Lora::target_modules>, not_empty(),
       "Linear layers of the blocks, by the ends of their names, or \"all-linear\"."},
      {"lora", "use_rslora", at<&C::lora, &Lora::use_rslora>, anything(), "Scale by lora_alpha / sqrt(r) instead."},
      {"lora", "init_lora_weights", at<&C::lora, &Lora::init_lora_weights>, one_of({"true", "gaussian", "pissa"}),
       "Initial values of the adapters.", false, true},
      {"lora", "modules_to_save", at<&C::lora, &Lora::modules_to_save>, no_empty_name(),
       "Modules that are trained and saved in full, by the ends of their names: embed_tokens, lm_head, norm (every "
       "norm), model.norm."},
      {"lora", "use_dora", at<&C::lora, &Lora::use_dora>, anything(), "Weight-decomposed adapters."},
      {"lora", "loraplus_lr_ratio", at<&C::lora, &Lora::loraplus_lr_ratio>, above_zero(),
       "LoRA+: the learning rate of B divided by that of A."},
      {"lora", "adapter", at<&C::lora, &Lora::adapter>, anything(),
       "A PEFT directory to start from, or the folder of a run that wrote one. Its adapter_config.json applies, and "
       "keys that are also set here must agree with it."},
      {"lora", "quantization", at<&C::lora, &Lora::quantization>, one_of({"none", "int8", "nf4"}),
       "Quantization of the frozen base. The matrices of the blocks take 8.5 bits (int8: Q8_0) or 4.5 bits (nf4: "
       "QLoRA) per element, at every stage."},
      {"lora", "double_quantization", at<&C::lora, &Lora::double_quantization>, anything(),
       "nf4: store the scales in 8 bits too, for 4.13 bits per element."},

      {"preference", "method", at<&C::preference, &Preference::method>, one_of({"dpo", "orpo", "kto"}),
       "Learn which answers are preferred (docs/preferences.md). The section's presence enables it. dpo and orpo take "
       "pairs of a chosen and a rejected answer, kto takes single answers with a label. dpo and kto compare with the model "
       "at the run's start; orpo needs no reference."},
      {"preference", "beta", at<&C::preference, &Preference::beta>, above_zero(),
       "dpo, kto: how closely the model stays at the reference. orpo: weight of the odds ratio."},
      {"preference", "loss_type", at<&C::preference, &Preference::loss_type>, each_of(dpo_terms()),
       "dpo: terms of the loss, with TRL's names. Their weighted sum is the loss."},
      {"preference", "loss_weights", at<&C::preference, &Preference::loss_weights>, anything(),
       "dpo: a weight for each term of loss_type. []: all 1."},
      {"preference", "desirable_weight", at<&C::preference, &Preference::desirable_weight>, zero_or_more(),
       "kto: weight of desirable answers. Choose it so that both kinds weigh about the same."},
      {"preference", "undesirable_weight", at<&C::preference, &Preference::undesirable_weight>, zero_or_more(),
       "kto: weight of the other answers."},
      {"preference", "divergence", at<&C::preference, &Preference::divergence>, anything(),
       "kto: subtract the divergence from the reference, which takes a forward pass of each step over mismatched answers. "
       "false: TRL's apo_zero_unpaired."},
      {"preference", "label_smoothing", at<&C::preference, &Preference::label_smoothing>,
       number("at least 0 and below 0.5", [](double x) { return x >= 0 && x < 0.5; }),
       "dpo: the share of pairs whose answers are assumed to be confused, for sigmoid, sigmoid_norm, robust and "
       "exo_pair."},

      {"checkpoint", "interval", at<&C::checkpoint, &CheckpointConfig::interval>, between(0, most_steps),
       "Steps between checkpoints; there is also one at the end. 0: none, unless a signal or job.time_limit stops the "
       "run."},
      {"checkpoint", "every_minutes", at<&C::checkpoint, &CheckpointConfig::every_minutes>,
       number("between 0 and 1000000", [](double x) { return x >= 0 && x <= 1e6; }),
       "Minutes between checkpoints, in addition to those of interval. One is written after the step in which they elapse, and at the end. 0: none."},
      {"checkpoint", "keep", at<&C::checkpoint, &CheckpointConfig::keep>, between(1, 1'000'000'000),
       "The number of newest checkpoints that are kept. The disk needs room for one more."},
      {"checkpoint", "keep_best", at<&C::checkpoint, &CheckpointConfig::keep_best>, anything(),
       "After each validation with the lowest loss so far, write the model or the adapter to best/ in job.output_dir. A "
       "later one replaces it."},
      {"checkpoint", "asynchronous", at<&C::checkpoint, &CheckpointConfig::asynchronous>, anything(),
       "A step waits only until each rank has copied its part of the states in memory. The copy is written while "
       "training continues. It takes as much memory as the part takes on disk (AdamW: 12 bytes per parameter / ranks)."},
      {"checkpoint", "export_dtype", at<&C::checkpoint, &CheckpointConfig::export_dtype>,
       one_of({"auto", "fp32", "bf16", "fp16"}),
       "Type of the weights in model/ at the end. auto: the type in which the model at model.path is stored (bf16 for "
       "a quantized GGUF file); fp32 for a preset, and if training.precision is \"fp32\"."},

      {"metrics", "log_interval", at<&C::metrics, &MetricsConfig::log_interval>, between(1, most_steps),
       "Steps between objects in metrics.jsonl."},
      {"metrics", "tensorboard", at<&C::metrics, &MetricsConfig::tensorboard>, anything(),
       "Also writes the metrics to event files in tb/ of the output directory, for tensorboard --logdir."},
      {"metrics", "trackio", at<&C::metrics, &MetricsConfig::trackio>, trackio_project(),
       "The name of a project: also writes the metrics to its database, PROJECT.db in the environment's TRACKIO_DIR, "
       "or else in trackio/ of the output directory, for trackio show --project PROJECT."},
      {"metrics", "dump_first_step", at<&C::metrics, &MetricsConfig::dump_first_step>, anything(),
       "A safetensors file for the results of step 1, in fp32: \"logits\" [global batch, longest row, vocab] in the "
       "order of rows, with shorter rows padded by zeros; \"loss\" []; and \"grad.NAME\" before clipping."},
      {"metrics", "step_parts", at<&C::metrics, &MetricsConfig::step_parts>, anything(),
       "On CPUs, metrics.jsonl says how each step spends its time: matrix products, attention, collectives, waiting. A "
       "line at the end of the run says what limits it (docs/profile.md)."},
      {"metrics", "trace_steps",
       [](C& config) -> Field {
         return NumberPair{&config.metrics.first_traced_step, &config.metrics.last_traced_step};
       },
       step_range(),
       "On CPUs, the first and the last step of a trace of all ranks, in trace/ of the output directory, for "
       "ui.perfetto.dev. [0, 0]: none."},
      {"metrics", "samples", at<&C::metrics, &MetricsConfig::samples>, anything(),
       "A file of prompts: at each validation the model continues each of them greedily, into samples.jsonl. A .txt "
       "file has one prompt per line, a .jsonl file one conversation, which the chat template writes."},
      {"metrics", "sample_tokens", at<&C::metrics, &MetricsConfig::sample_tokens>, between(1, 1'000'000),
       "The largest number of new tokens for each prompt of samples."},
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

bool is_optional(const std::string& section) { return section == "lora" || section == "preference"; }

bool has_section(const Config& config, const std::string& section) {
  if (section == "lora") return config.lora.has_value();
  return section != "preference" || config.preference.has_value();
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

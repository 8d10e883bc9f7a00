#pragma once
// Config: the settings of a run, from one TOML file and --set pairs. Fields have their keys' names, and initial values
// are defaults. docs/configuration.md lists the constraints, which come from the table in config_keys.cpp.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zero/optim/optimizer_options.h"

namespace zero {

struct ModelConfig;

struct JobConfig {
  std::string output_dir;              // required
  bool deterministic = false;          // GPU only; the CPU path always repeats bit for bit
  std::string reproducible = "none";   // none | ranks
  std::int64_t reproducible_rows = 1;  // sequences computed and summed as one micro-batch
  std::string time_limit;              // a time span (base/time_span.h); empty: none
  bool over_ranks() const { return reproducible == "ranks"; }
  bool operator==(const JobConfig&) const = default;
};

struct ModelSection {
  std::optional<std::string> preset;          // preset or path, exactly one
  std::optional<std::string> path;            // a Hugging Face directory
  std::map<std::string, std::string> fields;  // config.json fields that change a preset: name -> JSON value
  // Shares that training drops. Absent: the model's own, none with [preference].
  std::optional<double> embedding_dropout, attention_dropout, residual_dropout;
  bool allow_unused = false;  // accept unknown tensors in the model's file
  bool operator==(const ModelSection&) const = default;
};

struct DataConfig {
  std::vector<std::string> train;  // required; .txt, .jsonl, .json, .bin
  std::vector<double> weights;     // of the files of train; empty: all rows once per epoch
  std::vector<std::string> validation;
  double validation_fraction = 0;      // of the training rows, held out for validation; 0: none
  std::string tokenizer;               // empty: the model directory's
  std::string token_dtype = "uint16";  // .bin files: uint16 | uint32
  bool shuffle = true;
  std::string train_on = "assistant";  // conversations: assistant | all
  bool packing = false;
  std::string overlong = "truncate";  // truncate | drop
  std::string chat_template;          // empty: the model directory's
  bool operator==(const DataConfig&) const = default;
};

struct TrainingConfig {
  std::optional<std::int64_t> steps;  // steps or epochs, exactly one
  std::optional<double> epochs;
  std::int64_t seq_len = 0;                       // required
  std::int64_t local_batch_size = 1;              // sequences in a rank's micro-batch
  std::optional<std::int64_t> global_batch_size;  // absent: local_batch_size x ranks
  double max_norm = 1.0;                          // 0: no clipping
  std::string precision = "bf16";                 // fp32 | bf16 | fp16
  std::string matmul_precision = "highest";       // highest | high | medium, for fp32
  std::string device = "auto";                    // auto | cpu | cuda
  std::int64_t seed = 0;
  std::int64_t validation_interval = 0;  // steps; 0: never
  std::string on_nonfinite = "stop";     // stop | skip | rollback
  std::int64_t patience = 0;             // validations without a lower loss that end the run; 0: none do
  std::int64_t max_skipped_steps = 10;   // consecutive, with skip
  std::int64_t max_rollbacks = 5;        // before a checkpoint beyond the failure
  bool operator==(const TrainingConfig&) const = default;
};

// The name, the settings of zero/optim/rule_settings.inl, and [[optimizer.group]] as `groups`. Defaults are AdamW's.
// The defaults of other optimizers come from their rows.
struct OptimizerConfig : OptimizerOptions {
  std::string state_dtype = "fp32";   // fp32 | bf16
  std::string master_dtype = "fp32";  // fp32 | split, for bf16 weights
  bool operator==(const OptimizerConfig&) const = default;
};

struct SchedulerConfig {
  std::string type = "cosine";  // constant | linear | cosine | wsd
  std::int64_t warmup_steps = 0;
  double warmup_ratio = 0;  // of the run's steps, instead of warmup_steps
  double min_lr_ratio = 0.1;
  double decay_ratio = 0.2;  // wsd only

  /// The warm-up of a run of `steps`. A share is rounded up, as in transformers.
  std::int64_t warmup_of(std::int64_t steps) const;
  bool operator==(const SchedulerConfig&) const = default;
};

struct ZeroConfig {
  std::int64_t stage = 3;               // 0 | 1 | 2 | 3
  std::int64_t shard_degree = 0;        // ranks in a sharding group; 0: all
  std::string reduce_dtype = "fp32";    // fp32
  std::string gradient_dtype = "auto";  // auto | fp32 | bf16
  std::string frozen = "shard";         // frozen weights at stage 3: shard | keep
  bool operator==(const ZeroConfig&) const = default;
};

struct ParallelConfig {
  std::int64_t tensor = 1;        // ranks that share each matrix and the tokens of a micro-batch
  std::int64_t context = 1;       // ranks that share the tokens of each row
  std::int64_t pipeline = 1;      // stages that share the units of the model
  std::string schedule = "1f1b";  // 1f1b | gpipe | interleaved
  std::int64_t chunks = 2;        // runs of units on each stage, for "interleaved"
  bool regather = false;          // stage 3 may gather weights for each micro-batch
  bool operator==(const ParallelConfig&) const = default;
};

struct CommConfig {
  double deadline_seconds = 300;
  std::string shared_memory = "auto";  // auto | on | off
  std::int64_t ranks_per_gpu = 1;
  bool operator==(const CommConfig&) const = default;
};

struct CheckpointingConfig {    // [activation_checkpoint]
  std::string mode = "none";    // none | full | selective | attention
  std::int64_t every = 2;       // selective: every k-th block
  std::string keep = "auto";    // keep outputs of norms and activations for backward: auto | on | off
  std::int64_t mlp_tokens = 0;  // tokens in a tile of a block's MLP; 0: no tiles
  bool operator==(const CheckpointingConfig&) const = default;
};

struct OffloadConfig {
  std::string optimizer = "none";    // none | cpu | nvme
  std::string parameters = "none";   // none | cpu | nvme, at stage 3
  std::string activations = "none";  // none | cpu
  std::string nvme_dir;
  bool operator==(const OffloadConfig&) const = default;
};

struct LoraSection {  // PEFT's names; the section's presence enables it
  std::int64_t r = 8;
  double lora_alpha = 16;
  double lora_dropout = 0.0;
  std::vector<std::string> target_modules = {"q_proj", "v_proj"};  // or {"all-linear"}
  bool use_rslora = false;
  std::string init_lora_weights = "true";  // "true" | "gaussian" | "pissa"
  std::vector<std::string> modules_to_save;
  bool use_dora = false;
  double loraplus_lr_ratio = 1.0;
  std::string adapter;                // a PEFT directory to start from
  std::string quantization = "none";  // of the frozen base: none | int8 | nf4
  bool double_quantization = false;
  bool operator==(const LoraSection&) const = default;
};

struct PreferenceSection {     // TRL's names; the section's presence enables it
  std::string method = "dpo";  // dpo | orpo | kto
  double beta = 0.1;
  std::vector<std::string> loss_type = {"sigmoid"};  // dpo: terms (models/loss/dpo_loss.h)
  std::vector<double> loss_weights;                  // of loss_type; empty: all 1
  double label_smoothing = 0;
  double desirable_weight = 1, undesirable_weight = 1;  // kto
  bool divergence = true;                               // kto: false is apo_zero_unpaired
  /// True if the method uses the key.
  bool reads(const std::string& key) const {
    if (key == "loss_type" || key == "loss_weights" || key == "label_smoothing") return method == "dpo";
    if (key == "desirable_weight" || key == "undesirable_weight" || key == "divergence") return method == "kto";
    return true;
  }
  bool needs_reference() const { return method != "orpo"; }
  bool takes_pairs() const { return method != "kto"; }  // kto: judged answers
  bool operator==(const PreferenceSection&) const = default;
};

struct CheckpointConfig {
  std::int64_t interval = 0;  // steps; 0: none, unless a signal stops the run
  double every_minutes = 0;   // minutes between checkpoints; 0: none by time
  std::int64_t keep = 2;
  bool keep_best = false;             // the result with the lowest validation loss is written too
  bool asynchronous = false;          // training waits only for a copy in memory
  std::string export_dtype = "auto";  // auto | fp32 | bf16 | fp16
  /// True if checkpoints are written at regular intervals.
  bool is_regular() const { return interval > 0 || every_minutes > 0; }
  bool operator==(const CheckpointConfig&) const = default;
};

struct MetricsConfig {
  std::int64_t log_interval = 1;  // steps
  bool tensorboard = false;       // event files in tb/
  std::string trackio;            // a project; empty: none
  std::string dump_first_step;    // a safetensors file; empty: none
  bool step_parts = true;         // the parts of each step's time
  // The first and the last step of a trace, whole numbers; 0: none.
  double first_traced_step = 0, last_traced_step = 0;
  std::string samples;              // a file of prompts that validations continue; empty: none
  std::int64_t sample_tokens = 64;  // new tokens for each, at most
  bool traces(std::int64_t step) const { return double(step) >= first_traced_step && double(step) <= last_traced_step; }
  bool operator==(const MetricsConfig&) const = default;
};

struct Config {
  JobConfig job;
  ModelSection model;
  DataConfig data;
  TrainingConfig training;
  OptimizerConfig optimizer;
  SchedulerConfig lr_scheduler;
  ZeroConfig zero;
  ParallelConfig parallel;
  CommConfig comm;
  CheckpointingConfig activation_checkpoint;
  OffloadConfig offload;
  std::optional<LoraSection> lora;
  std::optional<PreferenceSection> preference;
  CheckpointConfig checkpoint;
  MetricsConfig metrics;

  std::string source;  // name of the file, for messages
  // The place where each given key was set: "zero.stage" -> "config.toml:12: [zero] stage = 3" or "--set zero.stage=3".
  std::map<std::string, std::string> origin;
  std::set<std::string> overridden;  // keys that an override set

  /// Sequences in a rank's micro-batch.
  std::int64_t micro_batch_rows() const { return job.over_ranks() ? job.reproducible_rows : training.local_batch_size; }

  /// The most tokens of a row: seq_len, or twice that if a row holds a pair.
  std::int64_t row_tokens() const { return training.seq_len * (preference && preference->takes_pairs() ? 2 : 1); }

  /// True if rows hold several documents, which do not attend to each other.
  bool has_documents() const { return data.packing || (preference && preference->takes_pairs()); }

  /// True if the run has validation data and uses them.
  bool validates() const {
    return (!data.validation.empty() || data.validation_fraction > 0) && training.validation_interval > 0;
  }

  /// True if the run compares the losses of its validations.
  bool follows_best() const { return checkpoint.keep_best || training.patience > 0; }

  /// True if the user set this key ("lora.r"), false if it has its default.
  bool is_given(const std::string& key) const { return origin.count(key) > 0; }

  /// Returns the start of a message about a key: place, key and value as given. For a default, returns the file's name
  /// and the key.
  std::string where(const std::string& key) const;

  /// Compares values, not the places where they were set.
  bool operator==(const Config& other) const;
};

/// The treatment of keys that contradict each other. If they are allowed, the caller calls check_contradictions()
/// (zero/config/config_rules.h).
enum class Contradictions : std::uint8_t { refused, allowed };

/// Reads a configuration file of at most 1 MiB and applies `overrides` ("section.key=value"; a value that is not TOML
/// is a string). Throws InputError that lists all independent mistakes, each with place, key, constraint and remedy.
/// Mistakes are TOML syntax errors, unknown keys, wrong types, invalid values, missing keys, and contradictions. For an
/// unknown key the message names the nearest known key, or the key that corresponds to another tool's. Reads no other
/// file.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {},
                   Contradictions contradictions = Contradictions::refused);

/// Does the same for a text, which messages call `source`. `places`: for an override that does not come from the
/// command line, its place in messages, by its words; the others are called "--set ...".
Config parse_config(std::string_view text, const std::string& source, const std::vector<std::string>& overrides = {},
                    Contradictions contradictions = Contradictions::refused,
                    const std::map<std::string, std::string>& places = {});

/// Parses [[optimizer.group]] tables as groups_toml() writes them. Throws InputError.
std::vector<OptimizerGroup> parse_groups(const std::string& toml);

/// Returns every key with its value as TOML. parse_config() reads it back to an equal Config.
std::string resolved_toml(const Config& config);

/// Checks the keys that depend on the number of ranks: global batch, shard_degree.
void validate_for(const Config& config, int ranks);

/// Throws InputError for a sequence longer than the model's context, and for sizes that overflow 64 bits or that no
/// machine can hold.
void validate_for_model(const Config& config, const ModelConfig& model);

/// Throws InputError for a warm-up longer than the run's `steps`; `why` says where that number comes from.
void validate_for_steps(const Config& config, std::int64_t steps, const std::string& why);

/// Throws InputError for settings that do not work on GPUs so far.
void validate_for_gpu(const Config& config);

/// A run needs the model's weights. An estimate needs only config.json, which model.path may name directly. Inputs are
/// an estimate's files for a run on another machine, whose folders for output are not here.
enum class FileNeed : std::uint8_t { run, estimate, inputs };

/// Checks the files and directories named by the configuration: they must exist and be of a known kind. The output
/// directory, offload.nvme_dir and metrics.dump_first_step must be writable.
void check_files(const Config& config, FileNeed wanted = FileNeed::run);

}  // namespace zero

// Whole configurations of other tools, as their users write them, and everything that a translation of each must hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/programs/foreign_config.h"

namespace zero {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

std::vector<std::string> dropped_keys(const ForeignConfig& config) {
  std::vector<std::string> keys;
  for (const auto& [key, why] : config.dropped) {
    EXPECT_FALSE(why.empty()) << key;
    keys.push_back(key);
  }
  return keys;
}

// For a Trainer that fills in what is "auto".
TEST(DeepSpeedFile, Stage2WithAutomaticValues) {
  const ForeignConfig config = translate_deepspeed(R"({
    "bf16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_max_lr": "auto",
                                                      "warmup_min_lr": "auto", "warmup_num_steps": "auto"}},
    "zero_optimization": {"stage": 2, "allgather_bucket_size": 2e8, "allgather_partitions": true,
                          "contiguous_gradients": true, "overlap_comm": true, "reduce_bucket_size": 2e8,
                          "reduce_scatter": true, "offload_optimizer": {"device": "none"}},
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "steps_per_print": 50, "wall_clock_breakdown": false})",
                                                   "ds.json");
  // The rate falls to 0 there, and the Trainer's betas are those of torch.
  EXPECT_THAT(config.overrides, UnorderedElementsAre("optimizer.name=\"adamw\"", "optimizer.betas=[0.9, 0.999]",
                                                     "lr_scheduler.type=\"linear\"", "lr_scheduler.min_lr_ratio=0.0",
                                                     "zero.stage=2", "offload.optimizer=\"none\""));
  EXPECT_THAT(dropped_keys(config),
              UnorderedElementsAre(
                  "bf16.enabled", "optimizer.params.lr", "optimizer.params.betas", "optimizer.params.eps",
                  "optimizer.params.weight_decay", "scheduler.params.total_num_steps", "scheduler.params.warmup_max_lr",
                  "scheduler.params.warmup_min_lr", "scheduler.params.warmup_num_steps", "scheduler.params.warmup_type",
                  "zero_optimization.allgather_bucket_size", "zero_optimization.allgather_partitions",
                  "zero_optimization.contiguous_gradients", "zero_optimization.overlap_comm",
                  "zero_optimization.reduce_bucket_size", "zero_optimization.reduce_scatter",
                  "gradient_accumulation_steps", "gradient_clipping", "steps_per_print", "train_batch_size",
                  "train_micro_batch_size_per_gpu", "wall_clock_breakdown"));
  EXPECT_THAT(config.dropped, Contains(Pair("bf16.enabled", HasSubstr("Trainer"))));
}

TEST(DeepSpeedFile, Stage3WithStatesInHostMemory) {
  const ForeignConfig config = translate_deepspeed(R"({
    "train_batch_size": 64, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8,
    "gradient_clipping": 1.0, "steps_per_print": 10,
    "fp16": {"enabled": true, "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16, "hysteresis": 2,
             "min_loss_scale": 1},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
                          "offload_param": {"device": "cpu", "pin_memory": true}, "sub_group_size": 1e9,
                          "stage3_prefetch_bucket_size": 5e7, "stage3_param_persistence_threshold": 1e5,
                          "stage3_gather_16bit_weights_on_model_save": true},
    "optimizer": {"type": "Adam", "params": {"lr": 1e-5, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
    "scheduler": {"type": "WarmupCosineLR",
                  "params": {"total_num_steps": 2000, "warmup_num_steps": 100, "cos_min_ratio": 0.05}},
    "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true,
                                 "contiguous_memory_optimization": false, "number_checkpoints": null},
    "flops_profiler": {"enabled": false}})",
                                                   "ds.json");
  EXPECT_THAT(
      config.overrides,
      UnorderedElementsAre("training.global_batch_size=64", "training.local_batch_size=1", "training.max_norm=1.0",
                           "training.precision=\"fp16\"", "zero.stage=3", "offload.optimizer=\"cpu\"",
                           "offload.parameters=\"cpu\"", "optimizer.name=\"adamw\"", "optimizer.lr=1e-05",
                           "optimizer.betas=[0.9, 0.95]", "optimizer.eps=1e-08", "optimizer.weight_decay=0.1",
                           "lr_scheduler.type=\"cosine\"", "lr_scheduler.warmup_steps=100", "training.steps=2000",
                           "lr_scheduler.min_lr_ratio=0.05", "activation_checkpoint.mode=\"full\""));
  EXPECT_THAT(config.dropped, Contains(Pair("fp16.hysteresis", HasSubstr("loss scale"))));
  EXPECT_THAT(config.dropped, Contains(Pair("zero_optimization.offload_param.pin_memory", HasSubstr("host buffers"))));
  EXPECT_THAT(config.dropped,
              Contains(Pair("activation_checkpointing.cpu_checkpointing", HasSubstr("offload.activations"))));
  EXPECT_THAT(config.dropped, Contains(Pair("flops_profiler.enabled", HasSubstr("trace_steps"))));
}

TEST(DeepSpeedFile, InfinityOnDisk) {
  const TemporaryFolder disk;
  const auto translated = [](const std::string& folder) {
    return translate_deepspeed(R"({
      "train_batch_size": 16, "bf16": {"enabled": true},
      "zero_optimization": {"stage": 3,
        "offload_optimizer": {"device": "nvme", "nvme_path": ")" +
                                   folder + R"(", "buffer_count": 4, "fast_init": false},
        "offload_param": {"device": "nvme", "nvme_path": ")" +
                                   folder + R"(", "buffer_count": 5, "buffer_size": 1e8,
                          "max_in_cpu": 1e9}},
      "aio": {"block_size": 262144, "queue_depth": 32, "thread_count": 1, "single_submit": false,
              "overlap_events": true}})",
                               "ds.json");
  };
  const ForeignConfig here = translated(disk.path());
  EXPECT_THAT(here.overrides,
              UnorderedElementsAre("training.global_batch_size=16", "training.precision=\"bf16\"", "zero.stage=3",
                                   "offload.optimizer=\"nvme\"", "offload.parameters=\"nvme\"",
                                   "offload.nvme_dir=\"" + disk.path() + "\"", "training.max_norm=0.0",
                                   "lr_scheduler.type=\"constant\"", "lr_scheduler.warmup_steps=0"));
  // block_size is another tool's name for the length of a row.
  EXPECT_THAT(here.dropped,
              Contains(Pair("aio.block_size", AllOf(HasSubstr("disk engine"), Not(HasSubstr("seq_len"))))));
  EXPECT_THAT(here.dropped, Contains(Pair("zero_optimization.offload_param.max_in_cpu", HasSubstr("host buffers"))));
  const ForeignConfig elsewhere = translated("/no/such/disk");
  EXPECT_THAT(elsewhere.overrides, Not(Contains(HasSubstr("nvme_dir"))));
  EXPECT_THAT(elsewhere.dropped, Contains(Pair("zero_optimization.offload_param.nvme_path",
                                               AllOf(HasSubstr("no folder here"), HasSubstr("offload.nvme_dir")))));
}

// Without "auto", DeepSpeed alone decides: fp32, no clipping, no weight decay, a constant rate.
TEST(DeepSpeedFile, DefaultsThatDifferAreNamed) {
  const ForeignConfig config = translate_deepspeed(R"({
    "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "sequence_parallel_size": 2,
    "optimizer": {"type": "Adam", "params": {"lr": 2e-4, "betas": [0.5, 0.9], "adam_w_mode": false}}})",
                                                   "ds.json");
  EXPECT_THAT(config.overrides,
              UnorderedElementsAre("training.local_batch_size=2", "parallel.context=2", "optimizer.name=\"adamw\"",
                                   "optimizer.lr=0.0002", "optimizer.betas=[0.5, 0.9]", "optimizer.weight_decay=0.0",
                                   "training.precision=\"fp32\"", "training.max_norm=0.0",
                                   "lr_scheduler.type=\"constant\"", "lr_scheduler.warmup_steps=0"));
  EXPECT_EQ(config.rows_of_rank, 8);
  EXPECT_EQ(config.ranks_of_row, 2);
  EXPECT_THAT(config.dropped, Contains(Pair("optimizer.params.adam_w_mode", HasSubstr("weight decay is always"))));
  // A Trainer fills in what is "auto", and a buffer's size has no effect whatever fills it in.
  const ForeignConfig filled = translate_deepspeed(R"({
    "train_batch_size": "auto", "gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": 2,
    "gradient_clipping": "auto", "fp16": {"enabled": "auto"}, "zero_optimization": {"reduce_bucket_size": "auto"}})",
                                                   "ds.json");
  EXPECT_THAT(filled.overrides, UnorderedElementsAre("training.local_batch_size=2"));
  EXPECT_EQ(filled.rows_of_rank, 0);
  EXPECT_THAT(filled.dropped, Contains(Pair("scheduler", HasSubstr("--set lr_scheduler.type=linear"))));
  EXPECT_THAT(filled.dropped, Contains(Pair("gradient_clipping", HasSubstr("zero_config here"))));
  EXPECT_THAT(filled.dropped,
              Contains(Pair("zero_optimization.reduce_bucket_size", HasSubstr("follow from the units"))));
}

// DeepSpeed's warm-up schedulers set the rate, whatever the optimizer's is.
TEST(DeepSpeedFile, ASchedulerSetsTheRate) {
  for (const char* rate : {"\"auto\"", "3e-3"}) {
    const ForeignConfig config = translate_deepspeed(
        text(R"({"optimizer": {"type": "AdamW", "params": {"lr": )", rate,
             R"(}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4, "warmup_num_steps": 10}}})"),
        "ds.json");
    EXPECT_THAT(config.overrides, IsSupersetOf({"optimizer.lr=0.0001", "lr_scheduler.type=\"constant\""}));
    EXPECT_THAT(config.overrides, Not(Contains("optimizer.lr=0.003")));
    EXPECT_THAT(config.dropped, Contains(Pair("optimizer.params.lr", testing::_)));
    EXPECT_THAT(config.dropped, Not(Contains(Pair("scheduler.params.warmup_max_lr", testing::_))));
  }
}

// The constructors in DeepSpeed's lr_schedules.py.
TEST(DeepSpeedFile, ASchedulersOwnDefaultsCount) {
  const auto translated = [](const std::string& scheduler) {
    return translate_deepspeed(
        R"({"optimizer": {"type": "AdamW", "params": {"lr": 3e-5}}, "scheduler": {"type": ")" + scheduler + R"("}})",
        "ds.json");
  };
  for (const auto& [scheduler, rate] : {std::pair("WarmupLR", "3e-05"), {"WarmupDecayLR", "0.001"}}) {
    const ForeignConfig config = translated(scheduler);
    EXPECT_THAT(config.overrides,
                IsSupersetOf({std::string("optimizer.lr=") + rate, std::string("lr_scheduler.warmup_steps=1000")}));
    EXPECT_EQ(
        std::ranges::count_if(config.overrides, [](const std::string& s) { return s.starts_with("optimizer.lr="); }),
        1);
    EXPECT_THAT(config.dropped, Contains(Pair("scheduler.params.warmup_type", HasSubstr("linear"))));
  }
  EXPECT_THAT(
      translated("WarmupCosineLR").overrides,
      IsSupersetOf({"optimizer.lr=3e-05", "lr_scheduler.warmup_steps=1000", "lr_scheduler.min_lr_ratio=0.0001"}));
  EXPECT_THAT(translated("OneCycle").overrides, Not(Contains("lr_scheduler.warmup_steps=1000")));
}

TEST(DeepSpeedFile, QuotedNumbersCount) {
  const ForeignConfig config = translate_deepspeed(R"({
    "train_micro_batch_size_per_gpu": "2", "gradient_accumulation_steps": "4",
    "optimizer": {"type": "AdamW", "params": {"betas": ["0.9", "0.95"]}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "0.002", "warmup_num_steps": "5"}}})",
                                                   "ds.json");
  EXPECT_EQ(config.rows_of_rank, 8);
  EXPECT_THAT(config.overrides, IsSupersetOf({"optimizer.betas=[0.9, 0.95]", "optimizer.lr=0.002",
                                              "lr_scheduler.warmup_steps=5", "training.local_batch_size=2"}));
}

TEST(DeepSpeedFile, ContradictionsAndOtherKindsOfValuesAreRefused) {
  for (const auto& [file, words] :
       {std::pair(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})",
                  "fp16.enabled and bf16.enabled are both"),
        {R"({"zero_optimization": true})", "zero_optimization: must be an object, and is true"},
        {R"({"gradient_clipping": "much"})", "gradient_clipping must be a number, and is much"}})
    EXPECT_THAT(message_of<InputError>([&given = file] { translate_deepspeed(given, "ds.json"); }),
                AllOf(HasSubstr("ds.json: "), HasSubstr(words)));
}

TEST(AxolotlFile, NumbersMayBeWords) {
  const ForeignConfig config = translate_axolotl(
      "base_model: m\nadapter: lora\nlora_r: \"16\"\nlora_alpha: 1_6\nwarmup_steps: \"10\"\nloraplus_lr_ratio: 16\n",
      "a.yml");
  EXPECT_THAT(config.overrides, IsSupersetOf({"lora.r=16", "lora.lora_alpha=16", "lr_scheduler.warmup_steps=10",
                                              "lora.loraplus_lr_ratio=16"}));
  EXPECT_EQ(message_of<InputError>([] { translate_axolotl("base_model: m\nlora_r: abc\n", "a.yml"); }),
            "a.yml: lora_r must be a number, and is abc");
  EXPECT_EQ(message_of<InputError>([] { translate_axolotl("base_model: m\nnum_epochs: abc\n", "a.yml"); }),
            "a.yml: num_epochs must be a number, and is abc");
  const ForeignConfig open = translate_axolotl(
      "base_model: m\nmax_steps: \"\"\nmicro_batch_size: auto\nval_set_size: false\nadam_beta2: \"0.95\"\n", "a.yml");
  EXPECT_EQ(open.steps, 0);
  EXPECT_EQ(open.rows_of_rank, 0);
  EXPECT_THAT(open.overrides, Contains("optimizer.betas=[0.9, 0.95]"));
  EXPECT_THAT(open.dropped, Contains(Pair("val_set_size", "off, as here")));
}

// axolotl packs only where the file says so, and zero_config by itself wherever it can.
TEST(AxolotlFile, ConversationsArePackedIfTheFileSaysSo) {
  for (const char* line : {"", "sample_packing: false\n"}) {
    const ForeignConfig config = translate_axolotl(std::string("base_model: m\n") + line, "a.yml");
    EXPECT_FALSE(config.packs);
    EXPECT_THAT(config.overrides, Not(Contains(HasSubstr("packing"))));
  }
  EXPECT_THAT(translate_axolotl("base_model: m\nsample_packing: true\n", "a.yml").overrides,
              Contains("data.packing=true"));
  EXPECT_THAT(translate_axolotl("base_model: m\nrl: dpo\nsample_packing: true\n", "a.yml").overrides,
              Not(Contains(HasSubstr("packing"))));
  EXPECT_TRUE(translate_deepspeed(R"({"train_batch_size": 4})", "ds.json").packs);
}

TEST(AxolotlFile, PreferencesCountAnswersAlone) {
  const ForeignConfig config = translate_axolotl("base_model: m\nrl: dpo\ntrain_on_inputs: true\n", "a.yml");
  EXPECT_THAT(config.overrides, Not(Contains(HasSubstr("train_on"))));
  EXPECT_THAT(config.dropped, Contains(Pair("train_on_inputs", HasSubstr("answers alone"))));
}

TEST(DeepSpeedFile, OptimizersThatAreNotThere) {
  const auto with = [](const std::string& type) {
    return translate_deepspeed(
        R"({"fp16": {"enabled": true}, "optimizer": {"type": ")" + type + R"(", "params": {"lr": 0.01}}})", "ds.json");
  };
  EXPECT_THAT(with("Lamb").overrides, Not(Contains(HasSubstr("optimizer.name"))));
  EXPECT_THAT(with("Lamb").dropped, Contains(Pair("optimizer.type", HasSubstr("--set optimizer.lr"))));
  EXPECT_THAT(with("OneBitAdam").overrides, Contains("optimizer.name=\"adamw\""));
  EXPECT_THAT(with("OneBitAdam").dropped, Contains(Pair("optimizer.type", HasSubstr("not compressed"))));
}

TEST(DeepSpeedFile, StatesInFewBytes) {
  const ForeignConfig config = translate_deepspeed(R"({
    "bf16": {"enabled": true, "bf16_optimizer_states": true, "bf16_master_weights_and_grads": true},
    "torch_autocast": {"enabled": true, "dtype": "torch.bfloat16"}, "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 3, "max_live_parameters": 0, "gather_16bit_weights_on_model_save": true,
                          "zenflow": {"topk_ratio": 0.1}}, "compile": {"disable": false}})",
                                                   "ds.json");
  EXPECT_THAT(config.overrides, UnorderedElementsAre("training.precision=\"bf16\"", "optimizer.state_dtype=\"bf16\"",
                                                     "training.max_norm=1.0", "zero.stage=3",
                                                     "lr_scheduler.type=\"constant\"", "lr_scheduler.warmup_steps=0"));
  EXPECT_THAT(config.dropped, Contains(Pair("bf16.bf16_master_weights_and_grads", HasSubstr("master_dtype=split"))));
  EXPECT_THAT(config.dropped, Contains(Pair("zero_optimization.zenflow.topk_ratio", HasSubstr("partial updates"))));
  for (const auto& [key, why] : config.dropped) EXPECT_THAT(why, Not(HasSubstr("nothing here"))) << key;
}

TEST(AxolotlFile, QLoraOnConversations) {
  const ForeignConfig config = translate_axolotl(R"(
base_model: NousResearch/Meta-Llama-3-8B
load_in_8bit: false
load_in_4bit: true
strict: false

chat_template: llama3
datasets:
  - path: chats.jsonl
    type: chat_template
    field_messages: messages
dataset_prepared_path: last_run_prepared
val_set_size: 0.05
output_dir: ./outputs/qlora

adapter: qlora
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_linear: true

sequence_len: 4096
sample_packing: true
pad_to_sequence_len: true

wandb_project:
wandb_entity:

gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 3
optimizer: paged_adamw_32bit
lr_scheduler: cosine
learning_rate: 0.0002
bf16: auto
tf32: false
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
logging_steps: 1
flash_attention: true
warmup_steps: 10
evals_per_epoch: 4
saves_per_epoch: 1
weight_decay: 0.0
special_tokens:
  pad_token: <|end_of_text|>
)",
                                                 "qlora.yml");
  EXPECT_EQ(config.model, "NousResearch/Meta-Llama-3-8B");
  EXPECT_EQ(config.data, "chats.jsonl");
  EXPECT_EQ(config.output_dir, "./outputs/qlora");
  EXPECT_TRUE(config.lora);
  EXPECT_THAT(config.overrides,
              UnorderedElementsAre(
                  "lora.quantization=\"nf4\"", "lora.double_quantization=true", "lora.r=32", "lora.lora_alpha=16",
                  "lora.lora_dropout=0.05", "lora.target_modules=\"all-linear\"", "data.chat_template=\"llama-3\"",
                  "data.packing=true", "training.seq_len=4096", "training.local_batch_size=2", "training.epochs=3",
                  "training.precision=\"bf16\"", "optimizer.name=\"adamw\"", "optimizer.betas=[0.9, 0.999]",
                  "optimizer.lr=0.0002", "optimizer.weight_decay=0.0", "lr_scheduler.type=\"cosine\"",
                  "lr_scheduler.min_lr_ratio=0.0", "lr_scheduler.warmup_steps=10",
                  "activation_checkpoint.mode=\"full\"", "metrics.log_interval=1", "data.validation_fraction=0.05"));
  EXPECT_THAT(dropped_keys(config), UnorderedElementsAre("load_in_8bit", "strict", "datasets", "dataset_prepared_path",
                                                         "pad_to_sequence_len", "wandb_project", "wandb_entity", "tf32",
                                                         "gradient_checkpointing_kwargs.use_reentrant",
                                                         "flash_attention", "special_tokens.pad_token"));
  // Epochs decide the steps, so these shares are known only with the data.
  ASSERT_EQ(config.shares.size(), 2U);
  EXPECT_EQ(config.shares[0].name, "evals_per_epoch");
  EXPECT_EQ(config.shares[0].key, "training.validation_interval");
  EXPECT_DOUBLE_EQ(config.shares[0].share, 1.0 / 12);
  EXPECT_EQ(config.shares[1].key, "checkpoint.interval");
  EXPECT_EQ(config.names.at("optimizer.lr"), "learning_rate");
  EXPECT_FALSE(config.names.contains("optimizer.betas"));  // a default of the tool
}

TEST(AxolotlFile, AllLinearLayersIncludeThoseThatAreNamed) {
  const std::string linear = "lora_target_linear: true\n", modules = "lora_target_modules:\n  - gate_proj\n";
  for (const std::string& keys : {linear + modules, modules + linear}) {
    const ForeignConfig config = translate_axolotl("base_model: a/b\nadapter: lora\n" + keys, "lora.yml");
    EXPECT_THAT(config.overrides, Contains("lora.target_modules=\"all-linear\"")) << keys;
    EXPECT_THAT(config.overrides, Not(Contains(HasSubstr("gate_proj")))) << keys;
    EXPECT_THAT(dropped_keys(config), Contains("lora_target_modules")) << keys;
  }
}

TEST(AxolotlFile, WholeModelWithStage3) {
  const ForeignConfig config = translate_axolotl(R"(
base_model: Qwen/Qwen2.5-7B
plugins:
  - axolotl.integrations.liger.LigerPlugin
liger_rope: true
datasets:
  - path: corpus.jsonl
    type: completion
  - path: more.jsonl
val_set_size: 0.02
output_dir: ./outputs/full
sequence_len: 8192
sample_packing: true
eval_sample_packing: false
train_on_inputs: true
gradient_accumulation_steps: 8
micro_batch_size: 1
num_epochs: 1
max_steps: 400
optimizer: adamw_torch_fused
adam_beta2: 0.95
max_grad_norm: 1.0
lr_scheduler: constant_with_warmup
learning_rate: 1e-5
warmup_ratio: 0.05
save_steps: 0.25
save_total_limit: 3
eval_steps: 0.1
logging_steps: 5
early_stopping_patience: 3
bf16: true
seed: 42
gradient_checkpointing: unsloth
attn_implementation: flash_attention_2
deepspeed: deepspeed_configs/zero3_bf16.json
)",
                                                 "full.yml");
  EXPECT_EQ(config.data, "corpus.jsonl,more.jsonl");
  EXPECT_FALSE(config.lora);
  EXPECT_THAT(
      config.overrides,
      UnorderedElementsAre(
          "data.validation_fraction=0.02", "data.packing=true", "data.train_on=\"all\"", "training.seq_len=8192",
          "training.local_batch_size=1", "training.steps=400", "training.precision=\"bf16\"", "training.seed=42",
          "training.max_norm=1.0", "training.validation_interval=40", "training.patience=3", "optimizer.name=\"adamw\"",
          "optimizer.betas=[0.9, 0.95]", "optimizer.lr=1e-05", "lr_scheduler.type=\"constant\"",
          "lr_scheduler.warmup_steps=20", "checkpoint.interval=100", "checkpoint.keep=3", "metrics.log_interval=5",
          "activation_checkpoint.mode=\"full\"", "zero.stage=3", "optimizer.weight_decay=0.0"));
  EXPECT_THAT(dropped_keys(config), UnorderedElementsAre("plugins", "liger_rope", "datasets", "eval_sample_packing",
                                                         "num_epochs", "attn_implementation", "deepspeed"));
  EXPECT_THAT(config.dropped, Contains(Pair("num_epochs", HasSubstr("max_steps"))));
  EXPECT_THAT(config.dropped, Contains(Pair("deepspeed", HasSubstr("its name"))));
}

// As in axolotl's examples: pretraining data, kernels of its own, settings of FSDP, and half precision switched off.
TEST(AxolotlFile, EveryKeyHasAReason) {
  const ForeignConfig config = translate_axolotl(R"(
base_model: m
pretraining_dataset:
  - path: web.jsonl
    name: en
    type: pretrain
test_datasets:
  - path: nowhere.jsonl
trust_remote_code: true
eval_sample_packing: false
lora_mlp_kernel: true
flash_attn_rms_norm: true
flex_attn_compile_kwargs:
  dynamic: false
fsdp:
  - full_shard
fsdp_config:
  fsdp_offload_params: false
qat:
  weight_dtype: int4
loss_watchdog_threshold: 5.0
special_tokens:
  pad_token: x
wandb_name: w
context_parallel_size: 2
micro_batch_size: 2
gradient_accumulation_steps: 4
max_steps: 1000
bf16: false
fp16:
optimizer: came_pytorch
)",
                                                 "a.yml");
  EXPECT_EQ(config.data, "web.jsonl");
  EXPECT_EQ(config.rows_of_rank, 8);
  EXPECT_EQ(config.ranks_of_row, 2);
  EXPECT_THAT(config.overrides,
              UnorderedElementsAre("training.local_batch_size=2", "training.steps=1000", "training.precision=\"fp32\"",
                                   "optimizer.weight_decay=0.0", "lr_scheduler.type=\"cosine\"",
                                   "lr_scheduler.min_lr_ratio=0.0", "lr_scheduler.warmup_steps=30"));
  EXPECT_THAT(config.dropped, Contains(Pair("test_datasets", HasSubstr("--set data.validation"))));
  EXPECT_THAT(config.dropped, Contains(Pair("optimizer", HasSubstr("came_pytorch is not there"))));
  EXPECT_THAT(config.dropped, Contains(Pair("qat.weight_dtype", HasSubstr("trains without it"))));
  for (const auto& [key, why] : config.dropped) EXPECT_THAT(why, Not(HasSubstr("nothing here"))) << key;
}

TEST(AxolotlFile, PreferencesAreTaken) {
  const std::string dpo = R"(
base_model: meta-llama/Llama-3.2-1B-Instruct
rl: dpo
rl_beta: 0.1
datasets:
  - path: preferences.jsonl
    type: chat_template.default
    field_chosen: chosen
    field_rejected: rejected
adapter: lora
lora_r: 8
sequence_len: 2048
num_epochs: 1
learning_rate: 5e-6
)";
  const ForeignConfig config = translate_axolotl(dpo, "dpo.yml");
  EXPECT_THAT(config.overrides,
              IsSupersetOf({"preference.method=\"dpo\"", "preference.beta=0.1", "training.seq_len=2048"}));
  EXPECT_THAT(translate_axolotl("base_model: m\nrl: ipo\n", "a.yml").overrides,
              IsSupersetOf({"preference.method=\"dpo\"", "preference.loss_type=[\"ipo\"]"}));
  EXPECT_THAT(translate_axolotl("base_model: m\nrl: dpo\nrpo_alpha: 0.5\n", "a.yml").overrides,
              Contains("preference.loss_weights=[1.0, 0.5]"));
  const ForeignConfig left = translate_axolotl("base_model: m\nrl: orpo\nkto_desirable_weight: 2.0\n", "a.yml");
  EXPECT_THAT(left.dropped, Contains(Pair("kto_desirable_weight", HasSubstr("orpo"))));
  EXPECT_THAT(message_of<InputError>([] { translate_axolotl("base_model: m\nrl: grpo\n", "g.yml"); }),
              HasSubstr("g.yml: rl: grpo"));
  EXPECT_THAT(message_of<InputError>([] { translate_axolotl("base_model: m\nreward_model: true\n", "r.yml"); }),
              HasSubstr("r.yml: reward_model: true"));
  const ForeignConfig none = translate_axolotl("base_model: m\nrl:\nreward_model: false\n", "a.yml");
  EXPECT_THAT(none.overrides, Not(Contains(HasSubstr("preference"))));
  EXPECT_THAT(none.dropped, Contains(Pair("rl", "empty")));
}

TEST(AxolotlFile, SharesOfAnUnknownLengthWaitForTheData) {
  const ForeignConfig config = translate_axolotl(
      "base_model: m\nnum_epochs: 2\nwarmup_ratio: 0.1\nsave_steps: 0.5\neval_steps: 0.25\nlogging_steps: 0.01\n"
      "val_set_size: 500\nsave_strategy: epoch\nmax_steps: -1\n",
      "a.yml");
  EXPECT_THAT(config.overrides, IsSupersetOf({"training.epochs=2", "lr_scheduler.warmup_ratio=0.1"}));
  EXPECT_THAT(config.overrides, Not(Contains(HasSubstr("interval"))));
  ASSERT_EQ(config.shares.size(), 2U);
  EXPECT_EQ(config.shares[0].key + " of " + config.shares[0].name, "checkpoint.interval of save_steps");
  EXPECT_EQ(config.shares[1].key + " of " + config.shares[1].name, "metrics.log_interval of logging_steps");
  EXPECT_DOUBLE_EQ(config.shares[1].share, 0.01);
  for (const auto& [key, own] : {std::pair("eval_steps", "training.validation_interval"),  // there are no data for it
                                 {"val_set_size", "data.validation_fraction"},
                                 {"save_strategy", "checkpoint.interval"}})
    EXPECT_THAT(config.dropped, Contains(Pair(key, HasSubstr(std::string("--set ") + own))));
}

TEST(AxolotlFile, TimesPerEpochAreStepsIfTheirNumberIsKnown) {
  const ForeignConfig config = translate_axolotl(
      "base_model: m\nnum_epochs: 3\nmax_steps: 1000\nsaves_per_epoch: 2\nevals_per_epoch: 4\nval_set_size: 0.1\n"
      "warmup_ratio: 0.0333\nsave_total_limit: 1\nload_best_model_at_end: true\n",
      "a.yml");
  EXPECT_THAT(config.overrides,
              IsSupersetOf({"training.steps=1000", "checkpoint.interval=167", "training.validation_interval=84",
                            "data.validation_fraction=0.1", "lr_scheduler.warmup_steps=33", "checkpoint.keep=1",
                            "checkpoint.keep_best=true"}));
  // Without data to validate on, nothing that needs validations is taken.
  const ForeignConfig without = translate_axolotl(
      "base_model: m\nmax_steps: 10\neval_steps: 2\nearly_stopping_patience: 3\nload_best_model_at_end: true\n",
      "a.yml");
  EXPECT_THAT(without.overrides, Contains("training.steps=10"));
  for (const char* key : {"training.patience", "training.validation", "checkpoint.keep_best"})
    EXPECT_THAT(without.overrides, Not(Contains(HasSubstr(key))));
  EXPECT_THAT(without.dropped, Contains(Pair("early_stopping_patience", HasSubstr("training.patience"))));
}

}  // namespace
}  // namespace zero

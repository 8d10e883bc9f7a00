#include "zero/programs/foreign_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "tests/unit/message_of.h"
#include "zero/programs/yaml_text.h"

namespace zero {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(ForeignConfig, TranslatesDeepSpeed) {
  const ForeignConfig config = translate_deepspeed(
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto",
          "bf16": {"enabled": true}, "fp16": {"enabled": false, "loss_scale": 0}, "gradient_clipping": 0.5,
          "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
                                "reduce_bucket_size": 5e8, "unheard_of": 1},
          "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.8, 0.99]}}})",
      "ds.json");
  EXPECT_EQ(config.tool, "DeepSpeed");
  EXPECT_THAT(config.overrides,
              UnorderedElementsAre("training.global_batch_size=64", "training.local_batch_size=4",
                                   "training.precision=\"bf16\"", "training.max_norm=0.5", "zero.stage=3",
                                   "offload.optimizer=\"cpu\"", "optimizer.name=\"adamw\"", "optimizer.lr=3e-05",
                                   "optimizer.betas=[0.8, 0.99]", "optimizer.weight_decay=0.0"));
  std::vector<std::string> dropped;
  for (const auto& [key, why] : config.dropped) {
    EXPECT_FALSE(why.empty()) << key;
    dropped.push_back(key);
  }
  EXPECT_THAT(dropped, UnorderedElementsAre("gradient_accumulation_steps", "fp16.enabled", "fp16.loss_scale",
                                            "scheduler", "zero_optimization.offload_optimizer.pin_memory",
                                            "zero_optimization.reduce_bucket_size", "zero_optimization.unheard_of"));
}

TEST(ForeignConfig, ReadsAxolotlAsPyYamlDoes) {
  const ForeignConfig config = translate_axolotl(
      "base_model: m\nadam_beta2: 0.95\nadam_beta1: 0.8\ntrain_on_inputs: yes\nbf16: on\nmax_steps: -1\n", "a.yml");
  EXPECT_THAT(
      config.overrides,
      UnorderedElementsAre("optimizer.betas=[0.8, 0.95]", "data.train_on=\"all\"", "training.precision=\"bf16\"",
                           "optimizer.name=\"adamw\"", "optimizer.weight_decay=0.0", "lr_scheduler.type=\"cosine\"",
                           "lr_scheduler.warmup_ratio=0.03", "lr_scheduler.min_lr_ratio=0.0"));
  EXPECT_THAT(config.dropped, UnorderedElementsAre(Pair("max_steps", "unset there")));
}

TEST(ForeignConfig, TranslatesAxolotl) {
  const ForeignConfig config = translate_axolotl(
      "base_model: NousResearch/Llama-3.2-1B\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\nlora_target_linear: true\n"
      "datasets:\n  - path: chats.jsonl\n    type: alpaca\nsequence_len: 2048\nsample_packing: true\nval_set_size: 0.1\n"
      "learning_rate: 0.0002\nnum_epochs: 1\nwandb_project:\nspecial_tokens:\n  pad_token: \"<|end|>\"\n",
      "a.yml");
  EXPECT_EQ(config.model, "NousResearch/Llama-3.2-1B");
  EXPECT_EQ(config.data, "chats.jsonl");
  EXPECT_TRUE(config.lora);
  EXPECT_THAT(
      config.overrides,
      UnorderedElementsAre("lora.quantization=\"nf4\"", "lora.double_quantization=true", "lora.r=32",
                           "lora.target_modules=\"all-linear\"", "training.seq_len=2048", "data.packing=true",
                           "optimizer.lr=0.0002", "training.epochs=1", "optimizer.name=\"adamw\"",
                           "optimizer.betas=[0.9, 0.999]", "optimizer.weight_decay=0.0", "lr_scheduler.type=\"cosine\"",
                           "lr_scheduler.warmup_ratio=0.03", "lr_scheduler.min_lr_ratio=0.0"));
  EXPECT_THAT(config.dropped, Contains(Pair("datasets", HasSubstr("type"))));
  EXPECT_THAT(config.dropped, Contains(Pair("val_set_size", HasSubstr("validation"))));
  EXPECT_THAT(config.dropped, Contains(Pair("special_tokens.pad_token", HasSubstr("tokenizer"))));
}

TEST(ForeignConfig, KeysOfAdaptersAloneBeginNone) {
  const ForeignConfig config = translate_axolotl("base_model: m\nlora_r: 8\n", "a.yml");
  EXPECT_THAT(config.overrides, Not(Contains(HasSubstr("lora"))));
  EXPECT_THAT(config.dropped, Contains(Pair("lora_r", "there is no adapter")));
}

TEST(ForeignConfig, UnknownAdaptersAreRefused) {
  EXPECT_EQ(message_of<InputError>([] { translate_axolotl("base_model: m\nadapter: ia3\n", "a.yml"); }),
            "a.yml: adapter is ia3: here it may be lora or qlora; leave it out to train all weights");
}

TEST(ForeignConfig, MisspeltKeysThatWouldHaveAnEffectAreRefused) {
  EXPECT_EQ(
      message_of<InputError>([] { translate_axolotl("base_model: m\nlearning_rat: 1\n", "a.yml"); }),
      "a.yml: learning_rat: is unknown here; the nearest key of axolotl is learning_rate: correct it, or leave it "
      "out");
  EXPECT_EQ(
      message_of<InputError>([] { translate_deepspeed(R"({"optimizer": {"params": {"weigth_decay": 1}}})", "d"); }),
      "d: optimizer.params.weigth_decay: is unknown here; the nearest key of DeepSpeed is "
      "optimizer.params.weight_decay: correct it, or leave it out");
  EXPECT_THAT(
      message_of<InputError>([] { translate_deepspeed(R"({"bf16": {}, "optimiser": {"params": {"lr": 1}}})", "d"); }),
      HasSubstr("the nearest key of DeepSpeed is optimizer.params.lr"));
  EXPECT_THAT(message_of<InputError>([] { translate_axolotl("base_model: m\nseqence_len: 512\n", "a.yml"); }),
              HasSubstr("the nearest key of axolotl is sequence_len:"));
  EXPECT_NO_THROW(translate_axolotl("base_model: m\nkd_beta: 0.5\n", "a.yml"));  // a key of axolotl
  for (const char* file :
       {R"({"optimizer": {"params": {"lrr": 1}}})", R"({"optimizer": {"typ": "Lion"}})",
        R"({"bf16": {}, "optimizr": {"typ": "Lion"}})", R"({"train_batch_size": 8, "gradient_acumulation_steps": 2})"})
    EXPECT_THAT(message_of<InputError>([&] { translate_deepspeed(file, "d"); }), HasSubstr("is unknown here")) << file;
  EXPECT_NO_THROW(translate_deepspeed(R"({"optimizer": {"params": {"r": 1}}})", "d"));  // no slip of lr
  const ForeignConfig config =
      translate_axolotl("base_model: m\nflash_atention: true\nfp8: true\nfar_from_all: 1\n", "a.yml");
  EXPECT_THAT(config.dropped, Contains(Pair("flash_atention", HasSubstr("key of axolotl is flash_attention"))));
  EXPECT_THAT(config.dropped, Contains(Pair("fp8", HasSubstr("bf16"))));
  EXPECT_THAT(config.dropped, Contains(Pair("far_from_all", "nothing here corresponds to it")));
}

TEST(ForeignConfig, TakesMuonsRatesAndMomentum) {
  const std::string head =
      R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, "optimizer": {"type": )";
  for (const char* rates :
       {R"("muon_lr": 0.02, "adam_lr": 0.001, "lr": 0.002)", R"("lr": 0.002, "muon_lr": 0.02, "adam_lr": 0.001)"}) {
    const ForeignConfig config =
        translate_deepspeed(head + R"("Muon", "params": {"momentum": 0.9, )" + rates + "}}}", "d");
    EXPECT_THAT(config.overrides, IsSupersetOf({"optimizer.momentum=0.9", "optimizer.lr=0.02",
                                                "optimizer.lr_adamw=0.001", "zero.gradient_dtype=\"fp32\"",
                                                "lr_scheduler.type=\"constant\"", "lr_scheduler.warmup_steps=0"}));
    EXPECT_THAT(config.overrides, Not(Contains("optimizer.lr=0.002")));
  }
  EXPECT_THAT(translate_deepspeed(head + R"("Muon", "params": {"lr": 0.002}}})", "d").overrides,
              IsSupersetOf({"optimizer.lr=0.002", "optimizer.lr_adamw=0.002"}));
  const ForeignConfig both = translate_deepspeed(head + R"("Muon", "params": {"lr": 0.002, "muon_lr": 0.02}}})", "d");
  EXPECT_THAT(both.overrides, IsSupersetOf({"optimizer.lr=0.02", "optimizer.lr_adamw=0.002"}));
  EXPECT_THAT(both.dropped, Not(Contains(Pair("optimizer.params.lr", testing::_))));
  EXPECT_EQ(both.names.at("optimizer.lr_adamw"), "optimizer.params.lr");
  const ForeignConfig adam =
      translate_deepspeed(head + R"("Adam", "params": {"lr": 0.002, "muon_lr": 0.02, "adam_lr": 0.1}}})", "d");
  EXPECT_THAT(adam.overrides, AllOf(Contains("optimizer.lr=0.002"), Not(Contains(HasSubstr("lr_adamw")))));
  EXPECT_THAT(adam.dropped, IsSupersetOf({Pair("optimizer.params.muon_lr", "is for Muon alone, there too"),
                                          Pair("optimizer.params.adam_lr", "is for Muon alone, there too")}));
}

TEST(ForeignConfig, TheSchedulersRateIsThatOfAllTensors) {
  const auto translated = [](const std::string& optimizer, const std::string& scheduler) {
    return translate_deepspeed(
        text(R"({"optimizer": {"type": )", optimizer, R"(}, "scheduler": {"type": )", scheduler, "}}"), "d");
  };
  const std::string adam = R"("Adam", "params": {"lr": 2e-05})",
                    muon = R"("Muon", "params": {"lr": 0.1, "muon_lr": 0.02, "adam_lr": 0.3})";
  EXPECT_THAT(translated(adam, R"("WarmupLR", "params": {})").overrides, Contains("optimizer.lr=2e-05"));
  EXPECT_THAT(translated(adam, R"("WarmupLR", "params": {"warmup_max_lr": null})").overrides,
              Contains("optimizer.lr=2e-05"));
  EXPECT_THAT(translated(adam, R"("WarmupLR", "params": {"warmup_max_lr": "auto"})").overrides,
              Contains("optimizer.lr=2e-05"));
  EXPECT_THAT(translated(adam, R"("WarmupCosineLR", "params": {})").overrides, Contains("optimizer.lr=2e-05"));
  const ForeignConfig decays = translated(adam, R"("WarmupDecayLR", "params": {"total_num_steps": 9})");
  EXPECT_THAT(decays.overrides, AllOf(Contains("optimizer.lr=0.001"), Not(Contains("optimizer.lr=2e-05"))));
  EXPECT_THAT(decays.dropped, Contains(Pair("optimizer.params.lr", HasSubstr("0.001 by default"))));
  const ForeignConfig named = translated(muon, R"("WarmupLR", "params": {"warmup_max_lr": 0.004})");
  EXPECT_THAT(named.overrides, IsSupersetOf({"optimizer.lr=0.004", "optimizer.lr_adamw=0.004"}));
  EXPECT_THAT(named.dropped, IsSupersetOf({Pair("optimizer.params.muon_lr", HasSubstr("warmup_max_lr is the rate")),
                                           Pair("optimizer.params.adam_lr", HasSubstr("warmup_max_lr is the rate"))}));
  EXPECT_EQ(named.names.at("optimizer.lr"), "scheduler.params.warmup_max_lr");
  EXPECT_THAT(named.dropped, Not(Contains(Pair("scheduler.params.warmup_max_lr", testing::_))));
}

TEST(ForeignConfig, TakesTheDefaultsOfPyTorchsOptimizers) {
  const auto of = [](const std::string& optimizer) {
    return translate_deepspeed(R"({"optimizer": {"type": )" + optimizer + "}}", "d").overrides;
  };
  EXPECT_THAT(of(R"("SGD", "params": {"lr": 0.002})"),
              IsSupersetOf({"optimizer.momentum=0.0", "optimizer.nesterov=false", "optimizer.weight_decay=0.0"}));
  EXPECT_THAT(of(R"("SGD", "params": {"momentum": 0.9, "nesterov": true})"),
              IsSupersetOf({"optimizer.momentum=0.9", "optimizer.nesterov=true"}));
  EXPECT_THAT(of(R"("Adam", "params": {"torch_adam": true})"), Contains("optimizer.weight_decay=0.01"));
  EXPECT_THAT(of(R"("Adam", "params": {"torch_adam": false})"), Contains("optimizer.weight_decay=0.0"));
  EXPECT_THAT(of(R"("Adam", "params": {"torch_adam": true, "adam_w_mode": false})"),
              Contains("optimizer.weight_decay=0.0"));
  EXPECT_THAT(of(R"("AdamW", "params": {"torch_adam": true, "adam_w_mode": false})"),
              Contains("optimizer.weight_decay=0.01"));
  EXPECT_THAT(translate_axolotl("base_model: m\noptimizer: sgd\n", "a").overrides,
              IsSupersetOf({"optimizer.momentum=0.0", "optimizer.nesterov=false"}));
}

TEST(ForeignConfig, SchedulesEndAndWarmUpAsThere) {
  const auto decay = [](const std::string& parameters) {
    return translate_deepspeed(R"({"scheduler": {"type": "WarmupDecayLR", "params": {)" + parameters + "}}}", "d")
        .overrides;
  };
  EXPECT_THAT(decay(R"("warmup_min_lr": 5e-5, "warmup_max_lr": 1e-4)"), Contains("lr_scheduler.min_lr_ratio=0.5"));
  EXPECT_THAT(decay(R"("warmup_min_lr": 0.0005)"), Contains("lr_scheduler.min_lr_ratio=0.5"));
  EXPECT_THAT(decay(R"("warmup_max_lr": 1e-4)"), Contains("lr_scheduler.min_lr_ratio=0.0"));
  const auto axolotl = [](const std::string& scheduler) {
    return translate_axolotl("base_model: m\nwarmup_steps: 7\nlr_scheduler: " + scheduler + "\n", "a");
  };
  EXPECT_THAT(axolotl("constant").overrides,
              AllOf(Contains("lr_scheduler.warmup_steps=0"), Not(Contains("lr_scheduler.warmup_steps=7"))));
  EXPECT_THAT(axolotl("constant").dropped, Contains(Pair("warmup_steps", HasSubstr("constant_with_warmup has"))));
  EXPECT_THAT(axolotl("constant_with_warmup").overrides,
              IsSupersetOf({"lr_scheduler.type=\"constant\"", "lr_scheduler.warmup_steps=7"}));
  EXPECT_THAT(axolotl("polynomial").overrides,
              IsSupersetOf({"lr_scheduler.type=\"linear\"", "lr_scheduler.min_lr_ratio=0.0"}));
  EXPECT_THAT(axolotl("rex").overrides, Contains("lr_scheduler.type=\"cosine\""));
  EXPECT_THAT(axolotl("rex").dropped, Contains(Pair("lr_scheduler", HasSubstr("so cosine counts"))));
}

TEST(ForeignConfig, TermsOfALossAreJoined) {
  const auto of = [](const std::string& rest) { return translate_axolotl("base_model: m\n" + rest, "a"); };
  EXPECT_THAT(of("rl: ipo\nrpo_alpha: 0.5\n").overrides,
              IsSupersetOf({"preference.loss_type=[\"ipo\", \"sft\"]", "preference.loss_weights=[1.0, 0.5]"}));
  EXPECT_THAT(of("rpo_alpha: 0.5\nrl: dpo\n").overrides, Contains("preference.loss_type=[\"sigmoid\", \"sft\"]"));
  EXPECT_THAT(of("rl: ipo\n").overrides, Contains("preference.loss_type=[\"ipo\"]"));
  EXPECT_THAT(of("rpo_alpha: 0.5\n").overrides, Not(Contains(HasSubstr("preference"))));
  EXPECT_THAT(of("optimizer: muon\nlearning_rate: 2e-3\n").overrides, Contains("optimizer.lr_adamw=0.002"));
}

TEST(ForeignConfig, DropsSettingsThatTheOptimizerDoesNotRead) {
  const std::string sgd = R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9, "betas": [0.9, 0.99]}}})";
  const ForeignConfig own = translate_deepspeed(sgd, "d");
  EXPECT_THAT(own.dropped, Contains(Pair("optimizer.params.betas", "is no setting of sgd")));
  for (const char* name : {"optimizer.name=adamw", "optimizer.name=\"adamw\""}) {
    const ForeignConfig replaced = translate_deepspeed(sgd, "d", {name});
    EXPECT_THAT(replaced.overrides, AllOf(Contains("optimizer.betas=[0.9, 0.99]"), Not(Contains(HasSubstr("momentum"))),
                                          Not(Contains(HasSubstr("nesterov")))));
  }
  EXPECT_THAT(translate_deepspeed(R"({"optimizer": {"type": "Adam"}})", "d", {"optimizer.name=sgd"}).overrides,
              Not(Contains(HasSubstr("betas"))));
  const ForeignConfig unknown =
      translate_deepspeed(R"({"optimizer": {"type": "RMSprop", "params": {"momentum": 0.9}}})", "d");
  EXPECT_THAT(unknown.dropped, Contains(Pair("optimizer.params.momentum", "is no setting of adamw")));
}

TEST(ForeignConfig, DoubleQuantizationIsForBasesInNf4) {
  const std::string model = "base_model: m\n", kwargs = "bnb_config_kwargs:\n  bnb_4bit_use_double_quant: ";
  const auto of = [&](const std::string& rest, const std::vector<std::string>& given = {}) {
    return translate_axolotl(model + rest, "a", given).overrides;
  };
  EXPECT_THAT(of("adapter: qlora\n"), Contains("lora.double_quantization=true"));
  EXPECT_THAT(of("adapter: qlora\n" + kwargs + "true\n"), Contains("lora.double_quantization=true"));
  EXPECT_THAT(of("adapter: qlora\n" + kwargs + "false\n"), Contains("lora.double_quantization=false"));
  EXPECT_THAT(of("adapter: lora\n" + kwargs + "true\n"), Not(Contains(HasSubstr("double"))));
  EXPECT_THAT(of("adapter: qlora\n", {"lora.quantization=int8"}), Not(Contains(HasSubstr("double"))));
  EXPECT_THAT(translate_axolotl(model + "trl:\n  beta: 0.1\n", "a").dropped,
              Contains(Pair("trl.beta", HasSubstr("GRPO"))));
}

TEST(ForeignConfig, MicsIsOffBelowOneRank) {
  for (const auto& [size, set] : {std::pair("-1", 0), {"4", 1}})
    EXPECT_EQ(std::ranges::count(
                  translate_deepspeed(text(R"({"zero_optimization": {"mics_shard_size": )", size, "}}"), "d").overrides,
                  "zero.shard_degree=4"),
              set);
}

TEST(ForeignConfig, WhatContradictsItselfIsRefused) {
  const std::string base = "base_model: m\n";
  for (const auto& [file, said] :
       {std::pair("bf16: true\nfp16: true\n", "a.yml: bf16 and fp16 are both true: leave one of them on"),
        {"adapter: qlora\nload_in_8bit: true\n",
         "a.yml: load_in_8bit is true, and the base is to have 4 bits (adapter: qlora): leave one of them"},
        {"sample_packing: maybe\n", "a.yml: sample_packing must be true or false, and is maybe"},
        {"lr: 3e-4\n", "a.yml: lr is the name of another tool: here it is learning_rate"}})
    EXPECT_EQ(message_of<InputError>([&, file = file] { translate_axolotl(base + file, "a.yml"); }), said);
  EXPECT_EQ(message_of<InputError>([] { translate_deepspeed(R"({"bf16": {"enabled": "yes"}})", "d"); }),
            "d: bf16.enabled must be true or false, and is yes");
  for (const char* file : {R"({"hidden_size": 64, "bos_token_id": 1})", "{}"})
    EXPECT_EQ(message_of<InputError>([file] { translate_deepspeed(file, "d"); }),
              "d: has no key of DeepSpeed, whose configurations are the JSON that is translated");
}

TEST(ForeignConfig, OfTwoKeysForTheSameSettingTheFirstIsDropped) {
  ForeignConfig config = translate_axolotl("base_model: m\nsaves_per_epoch: 2\nsave_steps: 5\n", "a.yml");
  EXPECT_THAT(config.overrides, Contains("checkpoint.interval=5"));
  EXPECT_THAT(config.dropped, Contains(Pair("saves_per_epoch", "save_steps counts, which sets the same here")));
  config = translate_axolotl("base_model: m\nsave_steps: 5\nsaves_per_epoch: 2\n", "a.yml");
  EXPECT_THAT(config.overrides, Not(Contains(HasSubstr("checkpoint.interval"))));
  EXPECT_THAT(config.dropped, Contains(Pair("save_steps", "saves_per_epoch counts, which sets the same here")));
  config = translate_axolotl("base_model: m\nadapter: qlora\nload_in_4bit: true\n", "a.yml");
  EXPECT_THAT(config.dropped, Not(Contains(Pair("adapter", testing::_))));
}

TEST(ForeignConfig, TheAccumulationIsToldByWhatItMakes) {
  const auto why = [](const ForeignConfig& config) {
    for (const auto& [key, reason] : config.dropped)
      if (key == "gradient_accumulation_steps") return reason;
    return std::string("used");
  };
  EXPECT_EQ(why(translate_axolotl("base_model: m\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n", "a")),
            "used");
  EXPECT_THAT(why(translate_axolotl("base_model: m\ngradient_accumulation_steps: 4\n", "a")),
              HasSubstr("the planner chooses the batch"));
  EXPECT_THAT(why(translate_deepspeed(R"({"train_batch_size": 8, "gradient_accumulation_steps": 8})", "d")),
              HasSubstr("the global batch counts"));
}

TEST(ForeignConfig, SettingsOfTheCommandLineCount) {
  const std::string file = "base_model: m\nval_set_size: 0.1\nload_best_model_at_end: true\n";
  EXPECT_THAT(translate_axolotl(file, "a.yml").dropped, Contains(Pair("val_set_size", HasSubstr("interval"))));
  const ForeignConfig config = translate_axolotl(file, "a.yml", {"training.validation_interval=5"});
  EXPECT_THAT(config.overrides, IsSupersetOf({"data.validation_fraction=0.1", "checkpoint.keep_best=true"}));
}

TEST(ForeignConfig, WeightsAreOffloadedAtStage3Alone) {
  const auto translated = [](int stage) {
    return translate_deepspeed(
        text(R"({"zero_optimization": {"stage": )", stage, R"(, "offload_param": {"device": "cpu"}}})"), "ds.json");
  };
  EXPECT_THAT(translated(3).overrides, Contains("offload.parameters=\"cpu\""));
  EXPECT_THAT(translated(2).overrides, Not(Contains(HasSubstr("offload"))));
  EXPECT_THAT(translated(2).dropped,
              Contains(Pair("zero_optimization.offload_param.device", HasSubstr("stage 3 alone"))));
}

TEST(YamlText, RefusesWhatItDoesNotTake) {
  for (const auto& [words, said] : {std::pair("a: [1\n", "is no YAML"),
                                    {"a: 1\na: 2\n", "given twice"},
                                    {"a: &x 1\nb: *x\n", "anchor"},
                                    {"a: 1\n---\nb: 2\n", "second document"},
                                    {"? [1]\n: 2\n", "key that is no word"}})
    EXPECT_THAT(message_of<InputError>([&, words = words] { parse_yaml(words, "a.yml"); }),
                AllOf(HasSubstr("a.yml:"), HasSubstr(said)));
  EXPECT_THAT(message_of<InputError>([] { parse_yaml(std::string(200, '['), "a.yml"); }), HasSubstr("a.yml:"));
}

TEST(YamlText, ReadsPlainWordsByTheCoreSchema) {
  const nlohmann::ordered_json tree = parse_yaml("a: 1\nb: 2e-4\nc: \"1\"\nd: ~\ne: yes\nf: true\n", "a.yml");
  EXPECT_EQ(tree.dump(), R"({"a":1,"b":0.0002,"c":"1","d":null,"e":true,"f":true})");
}

}  // namespace
}  // namespace zero

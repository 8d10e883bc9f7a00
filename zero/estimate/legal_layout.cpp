#include "zero/estimate/legal_layout.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/config/config_rules.h"
#include "zero/config/run_model.h"
#include "zero/config/setup.h"
#include "zero/estimate/memory_plan.h"
#include "zero/estimate/meta_rank.h"

namespace zero {
namespace {

/// A change of one setting.
struct LayoutChange {
  std::string setting;  // "parallel.tensor=2"
  std::function<void(Config& config)> apply;
  double distance = 0;
};

/// Adds the other values that an axis may have, nearest first.
void add_axis(const std::string& name, std::int64_t ParallelConfig::*axis, const Config& config, int ranks,
              std::vector<LayoutChange>& changes) {
  const std::int64_t asked = config.parallel.*axis;
  for (std::int64_t value = 1; value <= std::min<std::int64_t>(ranks, 64); ++value) {
    if (ranks % value != 0 || value == asked) continue;
    const double distance = value < asked ? double(asked) / double(value) : 1.5 * double(value) / double(asked);
    changes.push_back(
        {text("parallel.", name, "=", value), [=](Config& other) { other.parallel.*axis = value; }, distance});
  }
}

std::vector<LayoutChange> changes_to(const Config& config, int ranks) {
  std::vector<LayoutChange> changes;
  add_axis("tensor", &ParallelConfig::tensor, config, ranks, changes);
  add_axis("context", &ParallelConfig::context, config, ranks, changes);
  add_axis("pipeline", &ParallelConfig::pipeline, config, ranks, changes);
  for (std::int64_t stage = 0; stage < config.zero.stage; ++stage)
    changes.push_back({text("zero.stage=", stage), [=](Config& other) { other.zero.stage = stage; },
                       1.2 + 0.1 * double(config.zero.stage - stage)});
  if (config.zero.shard_degree > 0)
    changes.push_back({"zero.shard_degree=0", [](Config& other) { other.zero.shard_degree = 0; }, 1.1});
  if (config.parallel.schedule != "1f1b")
    changes.push_back({"parallel.schedule=1f1b", [](Config& other) { other.parallel.schedule = "1f1b"; }, 1});
  if (config.training.global_batch_size) {
    const std::int64_t size = *config.training.global_batch_size;
    for (const std::int64_t other : {2 * size, 4 * size, size + config.training.local_batch_size})
      changes.push_back({text("training.global_batch_size=", other),
                         [=](Config& changed) { changed.training.global_batch_size = other; }, 4});
  }
  if (config.activation_checkpoint.mlp_tokens > 0)
    changes.push_back({"activation_checkpoint.mlp_tokens=0",
                       [](Config& other) { other.activation_checkpoint.mlp_tokens = 0; }, 1.05});
  if (config.offload.activations != "none")
    changes.push_back(
        {"activation_checkpoint.mode=full", [](Config& other) { other.activation_checkpoint.mode = "full"; }, 1.05});
  if (config.job.over_ranks())
    changes.push_back({"job.reproducible=none", [](Config& other) { other.job.reproducible = "none"; }, 8});
  if (config.lora && config.lora->double_quantization)
    changes.push_back(
        {"lora.double_quantization=false", [](Config& other) { other.lora->double_quantization = false; }, 1.5});
  if (config.optimizer.name != "adamw")
    changes.push_back({"optimizer.name=adamw", [](Config& other) { other.optimizer.name = "adamw"; }, 8});
  std::stable_sort(changes.begin(), changes.end(),
                   [](const LayoutChange& a, const LayoutChange& b) { return a.distance < b.distance; });
  return changes;
}

std::string nearest_of(const Config& config, const ModelConfig& model, int ranks) {
  const std::vector<LayoutChange> changes = changes_to(config, ranks);
  const auto is_legal = [&](std::initializer_list<const LayoutChange*> made) {
    Config other = config;
    for (const LayoutChange* change : made) change->apply(other);
    return why_illegal(other, model, ranks).empty();
  };
  for (const LayoutChange& change : changes)
    if (is_legal({&change})) return change.setting;
  for (std::size_t a = 0; a < changes.size(); ++a)
    for (std::size_t b = a + 1; b < changes.size(); ++b)
      if (changes[a].setting.substr(0, changes[a].setting.find('=')) !=
              changes[b].setting.substr(0, changes[b].setting.find('=')) &&
          is_legal({&changes[a], &changes[b]}))
        return changes[a].setting + " " + changes[b].setting;
  return "";
}

const std::string small_run =
    "[job]\noutput_dir = \"out\"\n[data]\ntrain = [\"a.bin\"]\n"
    "[training]\nsteps = 10\nseq_len = 64\nlocal_batch_size = 1\nglobal_batch_size = 8\n";

/// Makes the configuration of a small run of a preset. Settings of [parallel] are applied last, since a model that does
/// not fit them is not an error here.
Config config_of(const std::vector<std::string>& settings, const std::string& model) {
  std::vector<std::string> others, axes;
  for (const std::string& setting : settings) (setting.starts_with("parallel.") ? axes : others).push_back(setting);
  Config config = parse_config(small_run + "[model]\npreset = \"" + model + "\"\n", "run.toml", others);
  for (const std::string& setting : axes) {
    const std::size_t sign = setting.find('=');
    const std::string name = setting.substr(0, sign), value = setting.substr(sign + 1);
    for (const ConfigKey& key : config_keys())
      if (key.full_name() == name)
        write_field(key.field(config), value == "true"               ? Value(true)
                                       : std::isdigit(value.front()) ? Value(std::int64_t(std::stoll(value)))
                                                                     : Value(value));
  }
  return config;
}

LayoutVerdict verdict_on(const std::vector<std::string>& settings, int ranks, const std::string& model) {
  const Config config = config_of(settings, model);
  return judge_layout(config, model_config_of(config), ranks);
}

/// Extracts "[zero] stage" from "run.toml:3: [zero] stage = 3: ...", or the setting from "--set zero.stage=3: ...".
std::string refusing_key(const std::string& why) {
  const std::size_t section = why.find('[');
  if (why.starts_with("--set ")) return why.substr(6, why.find_first_of("=:", 6) - 6);
  if (section == std::string::npos || section > 40) return why.substr(0, why.find_first_of(" :="));
  const std::size_t end = why.find_first_of(":=", section);
  std::string key = why.substr(section, end - section);
  while (key.ends_with(' ')) key.pop_back();
  return key;
}

}  // namespace

std::string why_illegal(const Config& config, const ModelConfig& model, int ranks) {
  try {
    check_contradictions(config);
    validate_for(config, ranks);
    validate_for_model(config, model);
    const BatchArithmetic batch = BatchArithmetic::of(config, ranks);
    const RunModel run = make_run_model(config, model, /*with_weights=*/false, {batch.mesh.tensor, 0});
    const MemoryWork work = memory_work_of(config, batch);
    const MetaRank rank(chain_of(run.own), work.engine, work);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

LayoutVerdict judge_layout(const Config& config, const ModelConfig& model, int ranks) {
  LayoutVerdict verdict{why_illegal(config, model, ranks), ""};
  if (!verdict.is_legal()) verdict.nearest = nearest_of(config, model, ranks);
  return verdict;
}

std::string layout_table() {
  struct Axes {
    std::string name;
    std::vector<std::string> settings;
    int ranks;
  };
  const std::vector<Axes> columns{
      {"data 2", {}, 2},
      {"hybrid 2 x 2", {"zero.shard_degree=2"}, 4},
      {"tensor 2", {"parallel.tensor=2"}, 2},
      {"context 2", {"parallel.context=2"}, 2},
      {"pipeline 2", {"parallel.pipeline=2"}, 2},
      {"tensor 2, context 2", {"parallel.tensor=2", "parallel.context=2"}, 4},
      {"tensor 2, pipeline 2", {"parallel.tensor=2", "parallel.pipeline=2"}, 4},
      {"all three, data 2", {"parallel.tensor=2", "parallel.context=2", "parallel.pipeline=2"}, 16}};
  const std::vector<std::pair<std::string, std::vector<std::string>>> rows{
      {"stage 0", {"zero.stage=0"}},
      {"stage 1", {"zero.stage=1"}},
      {"stage 2", {"zero.stage=2"}},
      {"stage 3", {"zero.stage=3"}},
      {"stage 3, regather", {"zero.stage=3", "parallel.regather=true"}},
      {"LoRA", {"zero.stage=1", "lora.r=4"}},
      {"DoRA, rsLoRA", {"zero.stage=1", "lora.r=4", "lora.use_dora=true", "lora.use_rslora=true"}},
      {"LoRA over NF4", {"zero.stage=1", "lora.r=4", "lora.quantization=nf4"}},
      {"LoRA over NF4, doubly", {"zero.stage=1", "lora.r=4", "lora.quantization=nf4", "lora.double_quantization=true"}},
      {"LoRA over int8", {"zero.stage=1", "lora.r=4", "lora.quantization=int8"}},
      {"recompute all", {"zero.stage=1", "activation_checkpoint.mode=full"}},
      {"recompute attention", {"zero.stage=1", "activation_checkpoint.mode=attention"}},
      {"MLP by tiles", {"zero.stage=1", "activation_checkpoint.mlp_tokens=32"}},
      {"inputs in host memory", {"zero.stage=1", "activation_checkpoint.mode=full", "offload.activations=cpu"}},
      {"states in host memory", {"zero.stage=1", "offload.optimizer=cpu"}},
      {"states on NVMe", {"zero.stage=1", "offload.optimizer=nvme", "offload.nvme_dir=nvme"}},
      {"states and weights on NVMe",
       {"zero.stage=3", "parallel.regather=true", "offload.optimizer=nvme", "offload.parameters=nvme",
        "offload.nvme_dir=nvme"}},
      {"interleaved", {"zero.stage=1", "parallel.schedule=interleaved", "model.tie_word_embeddings=false"}},
      {"adamw8bit", {"zero.stage=1", "optimizer.name=adamw8bit"}},
      {"sgd, lion", {"zero.stage=1", "optimizer.name=lion"}},
      {"adafactor", {"zero.stage=1", "optimizer.name=adafactor"}},
      {"prodigy", {"zero.stage=1", "optimizer.name=prodigy"}},
      {"muon", {"zero.stage=1", "optimizer.name=muon"}},
      {"reproducible over ranks", {"zero.stage=1", "job.reproducible=ranks"}},
      {"fp16", {"zero.stage=1", "training.precision=fp16"}},
  };
  std::string table = "| |", line = "|---|";
  for (const Axes& column : columns) {
    table += " " + column.name + " |";
    line += "---|";
  }
  table += "\n" + line + "\n";
  for (const auto& [name, settings] : rows) {
    table += "| " + name + " |";
    for (const Axes& column : columns) {
      std::vector<std::string> all = settings;
      all.insert(all.end(), column.settings.begin(), column.settings.end());
      const LayoutVerdict verdict = verdict_on(all, column.ranks, "llama-110m");
      table += " " + (verdict.is_legal() ? "yes" : "`" + refusing_key(verdict.why) + "`") + " |";
    }
    table += "\n";
  }
  return table;
}

std::string refused_layouts() {
  struct Case {
    int ranks;
    std::vector<std::string> settings;
    std::string model = "llama-15m";  // 6 heads, 6 key-value heads, 6 blocks, 288 wide, tied
  };
  const std::vector<Case> cases{
      {8, {"parallel.tensor=3"}},
      {2, {"parallel.tensor=4"}},
      {8, {"parallel.tensor=4"}},
      {7, {"parallel.context=7"}},
      {12, {"parallel.tensor=2", "parallel.context=6"}},
      {6, {"parallel.tensor=2", "parallel.context=2"}},
      {8, {"parallel.pipeline=8", "zero.stage=1"}},
      {6, {"parallel.pipeline=4", "zero.stage=1"}},
      {4, {"parallel.pipeline=2", "zero.stage=3"}},
      {2,
       {"parallel.pipeline=2", "zero.stage=1", "parallel.schedule=interleaved", "training.global_batch_size=3",
        "model.tie_word_embeddings=false"}},
      {4, {"parallel.pipeline=4", "zero.stage=1", "parallel.schedule=interleaved", "model.tie_word_embeddings=false"}},
      {2, {"parallel.pipeline=2", "zero.stage=1", "parallel.schedule=interleaved"}},
      {8, {"parallel.tensor=2", "zero.shard_degree=3"}},
      {4, {"parallel.tensor=2", "job.reproducible=ranks"}},
      {4, {"parallel.context=2", "job.reproducible=ranks"}},
      {6, {"zero.shard_degree=3", "job.reproducible=ranks", "training.global_batch_size=12"}},
      {3, {"job.reproducible=ranks"}},
      {4, {"optimizer.name=muon", "job.reproducible=ranks"}},
      {2, {"parallel.tensor=2", "lora.r=4", "lora.quantization=nf4", "lora.double_quantization=true"}},
      {2, {"parallel.tensor=2", "optimizer.name=adamw8bit", "model.hidden_size=264", "model.head_dim=44"}},
      {32, {"parallel.tensor=2"}},
      {2, {"parallel.tensor=2", "activation_checkpoint.mlp_tokens=32"}},
      {2, {"parallel.tensor=2", "lora.r=4", "lora.quantization=nf4"}},
  };
  std::string table = "| ranks | settings | message | nearest |\n|---|---|---|---|\n";
  for (const Case& one : cases) {
    std::string settings;
    for (const std::string& setting : one.settings) settings += (settings.empty() ? "" : ", ") + setting;
    const LayoutVerdict verdict = verdict_on(one.settings, one.ranks, one.model);
    table += text("| ", one.ranks, " | ", settings, " | ", verdict.is_legal() ? "LEGAL" : verdict.why, " | ",
                  verdict.nearest, " |\n");
  }
  return table;
}

}  // namespace zero

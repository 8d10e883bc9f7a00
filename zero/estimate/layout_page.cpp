#include "zero/estimate/layout_page.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "zero/config/setup.h"
#include "zero/estimate/legal_layout.h"

namespace zero {
namespace {

const std::string small_run =
    "[job]\noutput_dir = \"out\"\n[data]\ntrain = [\"a.bin\"]\n"
    "[training]\nsteps = 10\nseq_len = 64\nlocal_batch_size = 1\nglobal_batch_size = 8\n";

/// Makes the configuration of a small run of a preset.
Config config_of(const std::vector<std::string>& settings, const std::string& model) {
  return parse_config(small_run + "[model]\npreset = \"" + model + "\"\n", "run.toml", settings,
                      Contradictions::allowed);
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
      const Config config = config_of(all, "llama-110m");
      const std::string why = why_illegal(config, model_config_of(config), {.ranks = column.ranks});
      table += " " + (why.empty() ? "yes" : "`" + refusing_key(why) + "`") + " |";
    }
    table += "\n";
  }
  return table;
}

std::string refused_layouts() {
  struct Case {  // of llama-15m: 6 heads, 6 key-value heads, 6 blocks, 288 wide, tied
    int ranks;
    std::vector<std::string> settings;
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
  std::string table = "| ranks | settings | message | legal here |\n|---|---|---|---|\n";
  for (const Case& one : cases) {
    std::string settings;
    for (const std::string& setting : one.settings) settings += (settings.empty() ? "" : ", ") + setting;
    const Config config = config_of(one.settings, "llama-15m");
    const LayoutVerdict verdict = judge_layout(config, model_config_of(config), {.ranks = one.ranks});
    table += text("| ", one.ranks, " | ", settings, " | ", verdict.is_legal() ? "LEGAL" : verdict.why, " | ",
                  verdict.remedies(), " |\n");
  }
  return table;
}

}  // namespace zero

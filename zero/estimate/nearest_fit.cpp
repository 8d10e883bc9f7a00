#include "zero/estimate/nearest_fit.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "zero/estimate/key_values.h"

namespace zero {
namespace {

/// A change of one kind: its variants, mildest first.
using Change = std::vector<KeyValues>;

Change offloads(const Config& config, const std::string& key, const std::string& now, bool on_device) {
  Change ways;
  // On the CPU, everything is in host memory already.
  if (on_device && now == "none") ways.push_back({{key, std::string("cpu")}});
  if (now == "nvme") return ways;
  ways.push_back({{key, std::string("nvme")}});
  if (config.offload.nvme_dir.empty()) ways.back().emplace_back("offload.nvme_dir", offload_directory(config));
  return ways;
}

std::vector<Change> changes_of(const Config& config, bool on_device) {
  Change kept, stages, recompute, gradients, batches;
  if (config.activation_checkpoint.keep == "on") kept.push_back({{"activation_checkpoint.keep", std::string("auto")}});
  for (std::int64_t stage = config.zero.stage + 1; stage <= 3; ++stage) {
    stages.push_back({{"zero.stage", stage}});
    if (stage == 3 && config.parallel.pipeline > 1 && !config.parallel.regather)
      stages.back().emplace_back("parallel.regather", true);
  }
  if (config.activation_checkpoint.mode != "full")
    recompute.push_back({{"activation_checkpoint.mode", std::string("full")}});
  if (on_device && config.offload.activations == "none") {
    recompute.push_back({{"offload.activations", std::string("cpu")}});
    if (config.activation_checkpoint.mode != "full")
      recompute.back().insert(recompute.back().begin(), {"activation_checkpoint.mode", std::string("full")});
  }
  const bool own_sums = config.job.over_ranks();  // gradient type and micro-batches are then fixed
  if (config.training.precision == "bf16" && config.zero.gradient_dtype != "bf16" && !own_sums)
    gradients.push_back({{"zero.gradient_dtype", std::string("bf16")}});
  for (std::int64_t size = config.training.local_batch_size / 2; size >= 1 && !own_sums; size /= 2) {
    batches.push_back({{"training.local_batch_size", size}});
    if (!config.is_given("training.global_batch_size"))
      batches.back().emplace_back("training.global_batch_size", *config.training.global_batch_size);
  }
  return {kept,
          stages,
          recompute,
          gradients,
          offloads(config, "offload.optimizer", config.offload.optimizer, on_device),
          offloads(config, "offload.parameters", config.offload.parameters, on_device),
          batches};
}

class Search {
 public:
  Search(std::vector<Change> changes, int ranks, bool on_device, const FitTest& fits)
      : changes_(std::move(changes)), ranks_(ranks), on_device_(on_device), fits_(fits) {}

  /// Returns the first combination of changes, with all of them used, with which `config` fits; empty if there is none.
  KeyValues find(const Config& config) const {
    for (unsigned mask = 1; mask < 1u << changes_.size(); ++mask)
      if (KeyValues found; try_ways(config, mask, found)) return found;
    return {};
  }

  bool fits(const Config& config) const {
    const bool away = config.offload.parameters != "none";
    if (away && (config.zero.stage != 3 || (on_device_ && config.offload.optimizer == "none"))) return false;
    try {
      return fits_(config, BatchArithmetic::of(config, ranks_));
    } catch (const InputError&) {
      return false;  // the batch size does not divide
    }
  }

 private:
  // Tries the variants of the changes in `mask`, last change first.
  bool try_ways(const Config& config, unsigned mask, KeyValues& found) const {
    int last = int(changes_.size()) - 1;
    while (last >= 0 && !(mask >> last & 1u)) --last;
    if (last < 0) return fits(config);
    for (const KeyValues& way : changes_[std::size_t(last)]) {
      Config other = config;
      set_keys(other, way);
      if (!try_ways(other, mask & ~(1u << last), found)) continue;
      for (const auto& setting : way)  // two variants may set the same folder
        if (std::find(found.begin(), found.end(), setting) == found.end()) found.push_back(setting);
      return true;
    }
    return false;
  }

  std::vector<Change> changes_;
  int ranks_;
  bool on_device_;
  const FitTest& fits_;
};

// Tries adapters on a trained model, since they are useless on random weights.
KeyValues adapters_that_fit(const Config& config, const Search& search) {
  if (config.lora || !config.model.path) return {};
  const KeyValues lora{{"lora.r", Config().lora.value_or(LoraSection()).r}};
  for (const char* quantization : {"none", "int8", "nf4"})
    for (const char* mode : {"none", "full"}) {
      KeyValues settings = lora;
      if (quantization != std::string("none")) settings.emplace_back("lora.quantization", std::string(quantization));
      if (mode != std::string("none") && config.activation_checkpoint.mode != mode)
        settings.emplace_back("activation_checkpoint.mode", std::string(mode));
      Config other = config;
      set_keys(other, settings);
      if (search.fits(other)) return settings;
    }
  return {};
}

}  // namespace

std::string offload_directory(const Config& config) {
  if (!config.offload.nvme_dir.empty()) return config.offload.nvme_dir;
  std::string output = std::filesystem::path(config.job.output_dir).lexically_normal().string();
  while (output.size() > 1 && output.back() == '/') output.pop_back();
  return output + "-offload";
}

std::string nearest_fit(const Config& config, const BatchArithmetic& batch, bool on_device, const FitTest& fits) {
  Config start = config;
  start.training.global_batch_size = batch.global_batch_size;  // a smaller micro-batch changes memory, not the training
  const Search search(changes_of(start, on_device), batch.mesh.ranks(), on_device, fits);
  KeyValues found = search.find(start);
  if (found.empty()) found = adapters_that_fit(start, search);
  return as_arguments(found);
}

}  // namespace zero

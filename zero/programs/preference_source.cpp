#include "zero/programs/preference_source.h"

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/formats/base_model.h"
#include "zero/config/model_paths.h"
#include "zero/programs/checkpoint_export.h"

namespace zero {
namespace {

/// The configuration of the preference run that made the model or the adapter; none for others.
std::optional<Config> preference_run_of(const ModelPlace& named, const ModelPlace& resolved) {
  for (const std::string& path : {named.adapter, resolved.adapter, named.model, resolved.model}) {
    if (path.empty()) continue;
    std::optional<Config> config = config_of_place(path);
    if (config && config->preference) return config;
  }
  return std::nullopt;
}

/// The model with which a run began; none if that is not known. A checkpoint of adapters holds them as they are now.
std::optional<ModelPlace> start_of_run(const Config& run, const ModelPlace& resolved) {
  const bool holds_base = !is_checkpoint(resolved.model);
  if (run.lora && holds_base) return resolve({.model = resolved.model, .adapter = run.lora->adapter});
  if (!run.model.path) return std::nullopt;
  // Paths of a configuration are relative to where its run was started, which the checkpoint knows.
  const std::string base = run.lora ? CheckpointExport(resolved.model, resolved.base).base() : *run.model.path;
  if (is_model(base) || is_gguf_model(base))
    return resolve({.model = base, .adapter = run.lora ? run.lora->adapter : ""});
  log_warning(
      base, ": the model with which the run began is not there now, so there is no reference: name it by --reference");
  return std::nullopt;
}

}  // namespace

PreferenceSource preference_source_of(const ModelPlace& named, const ModelPlace& resolved,
                                      const PreferenceOptions& options) {
  PreferenceSource source;
  const std::optional<Config> run = preference_run_of(named, resolved);
  source.is_named = run || !options.method.empty();
  if (run && (options.method.empty() || options.method == run->preference->method)) {
    source.settings = *run->preference;
    if (source.settings.divergence) source.exchanged = run->training.global_batch_size.value_or(0);
  } else if (!options.method.empty()) {
    source.settings.method = options.method;
  }
  if (options.beta) source.settings.beta = *options.beta;
  if (!options.reference.empty()) {
    if (source.settings.method == "orpo")
      throw InputError("--reference is for dpo and kto, and orpo compares with none: leave it out");
    source.reference = resolve({.model = options.reference});
  } else if (run) {
    source.reference = start_of_run(*run, resolved);
  } else if (!resolved.adapter.empty()) {
    source.reference = ModelPlace{.model = resolved.model};
  }
  if (source.reference) source.reference->unused = named.unused;
  return source;
}

}  // namespace zero

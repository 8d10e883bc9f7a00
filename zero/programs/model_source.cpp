#include "zero/programs/model_source.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/scratch_folder.h"
#include "base/log.h"
#include "models/families/families.h"
#include "models/formats/base_model.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"
#include "models/formats/hf_weights.h"
#include "models/lora/adapted_weights.h"
#include "zero/config/config.h"
#include "zero/config/model_paths.h"
#include "zero/config/setup.h"
#include "zero/output/run_mark.h"
#include "zero/programs/checkpoint_export.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

std::string joined(const std::string& folder, const char* name) { return (fs::path(folder) / name).string(); }

bool is_run(const fs::path& folder) { return is_file(folder / "config.toml"); }

/// The configuration of a run; none if the folder has none or it is invalid. UnreadableError if it cannot be
/// read.
std::optional<Config> config_of_run(const std::string& run) {
  if (!is_run(run)) return std::nullopt;
  try {
    return load_config(joined(run, "config.toml"));
  } catch (const UnreadableError&) {
    throw;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The base model of an adapter's run; empty if its configuration is invalid or names a preset.
std::string base_of_run(const std::string& run) {
  const std::optional<Config> config = config_of_run(run);
  return config ? config->model.path.value_or("") : "";
}

/// The precision of the run that wrote RUN/model or RUN/adapter; empty for other folders.
std::string precision_of_run(const std::string& written) {
  fs::path place = fs::path(written).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  if (place.filename() != "model" && place.filename() != "adapter" && place.filename() != "best") return "";
  const std::string run = (place / "..").lexically_normal().string();
  if (!is_marked(run, Mark::run)) return "";
  const std::optional<Config> config = config_of_run(run);
  return config ? config->training.precision : "";
}

/// True if a path is a regular file, not a link, that the caller owns.
bool is_own_file(const std::string& path) {
  const FileFacts facts = facts_of(path, Links::kept);
  return facts.kind == FileFacts::Kind::file && facts.owner == ::geteuid();
}

/// Throws InputError for a run's folder, or its checkpoints/, without a checkpoint.
void refuse_without_checkpoints(const std::string& path) {
  fs::path place = fs::path(path).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  if (is_run(place))
    throw InputError(text(path,
                          ": is a run that has no model yet, and no checkpoints were written there: let it end, or "
                          "give it [checkpoint] interval"));
  const fs::path run = place.parent_path();
  if (place.filename() == "checkpoints" && is_run(run))
    throw InputError(text(path, ": no checkpoints were written there, which takes [checkpoint] interval",
                          is_model(joined(run, "model")) ? "; name the model, " + joined(run, "model") : ""));
}

std::string resolve_model(const std::string& path) {
  if (is_gguf_model(path) || is_model(path) || is_adapter(path) || is_checkpoint(path)) return path;
  if (is_model(joined(path, "model"))) return joined(path, "model");
  if (adapter_of(path) != path) {
    const std::string base = base_of_run(path);
    throw InputError(text(path, ": is a run that made an adapter: name the model that it was trained on",
                          base.empty() ? "" : ", " + base + ",", " and --adapter ", path));
  }
  const std::string newest = newest_checkpoint_of(path);
  if (!newest.empty()) return newest;
  refuse_without_checkpoints(path);
  if (const std::string file = is_folder(path) ? gguf_in(path) : ""; !file.empty())
    throw InputError(text(path, ": holds a model as GGUF: name the file, ", file));
  return path;
}

/// Resolves a run that made an adapter to its base model and the adapter; none for other paths. The run's config.toml
/// names the base model, so the user must own that file. Otherwise a stranger's folder could name any of the user's
/// models.
std::optional<ModelPlace> resolve_adapter_run(const ModelPlace& place) {
  const std::string& run = place.model;
  if (!place.adapter.empty() || adapter_of(run) == run || is_model(run) || is_model(joined(run, "model")))
    return std::nullopt;
  if (!is_own_file(joined(run, "config.toml"))) return std::nullopt;
  const std::string base = base_of_run(run);
  if (base.empty()) return std::nullopt;
  if (!is_model(base) && !is_gguf_model(base))
    throw InputError(text(run, ": is a run that made an adapter, and the model that it was trained on is not at ", base,
                          " now: name the model, and --adapter ", run));
  log_info(run, ": the adapter of this run over ", base, ", the model that it was trained on");
  return ModelPlace{base, adapter_of(run), place.tokenizer, place.unused, place.base};
}

ModelSource open_directory(const ModelPlace& place) {
  const auto directory = std::make_shared<HfDirectory>(place.model);
  ModelSource source;
  source.config = directory->config();
  source.weights = std::make_shared<HfWeights>(directory, place.unused);
  source.options.type = stored_type_of_model(place.model);
  source.options.base = place.model;
  source.options.tokenizer = find_tokenizer(place.tokenizer, place.adapter, place.model);
  return source;
}

ModelSource open_gguf(const ModelPlace& place) {
  const GgufModel model = open_gguf_model(place.model, place.unused);
  ModelSource source;
  source.config = model.config;
  source.weights = model.weights;
  source.stored = {model.weights,
                   [weights = model.weights](const TensorSpec& tensor) { return weights->type_of(tensor); }};
  source.options.type = stored_type_of_model(place.model);
  source.options.tokenizer = find_tokenizer(place.tokenizer, place.adapter, gguf_tokenizer_folder(*model.file));
  if (source.options.tokenizer.tokenizer.empty())
    log_warning(place.model, ": ", why_no_tokenizer(*model.file), "; name the model's tokenizer by --tokenizer");
  return source;
}

/// Only adapters of the blocks' projections can stay apart, and DoRA's lengths take the values of the base.
bool can_stay_apart(const Model& model, const LoraOptions& options) {
  std::set<std::string> unmatched;
  targeted_projections(model, options.target_modules, &unmatched);
  return !options.use_dora && unmatched.empty();
}

StoredSource with_adapter(const StoredSource& base, const Model& model,
                          const std::shared_ptr<const AdapterContents>& adapter,
                          const std::shared_ptr<MergedWeights>& merged) {
  const bool apart = can_stay_apart(model, adapter->options());
  const auto type_of = [adapter, apart, of_base = base.type_of](const TensorSpec& tensor) -> std::optional<GgmlType> {
    if (tensor.name.starts_with(peft_prefix)) return std::nullopt;
    const AdapterContents::Place& place = adapter->place(tensor);
    return place.whole.empty() && (apart || place.a.empty()) ? of_base(tensor) : std::nullopt;
  };
  if (!apart) return {merged, type_of};
  return {std::make_shared<AdaptedWeights>(base.weights, adapter), type_of, adapter->options()};
}

/// A checkpoint of adapters stands for its base model with them. They are written as the run would have written them.
ModelSource open_adapter_checkpoint(const ModelPlace& place) {
  const CheckpointExport checkpoint(place.model, place.base, place.tokenizer);
  const std::string base = checkpoint.base();
  if (base.empty())
    throw InputError(place.model +
                     ": is a checkpoint of adapters over random weights of a preset, which no file holds");
  if (!is_model(base) && !is_gguf_model(base))
    throw InputError(text(place.model,
                          ": is a checkpoint of an adapter, and the model that it was trained on is not at ", base,
                          " now: name it by --base"));
  checkpoint.check_adapter();
  checkpoint.check_base();
  const auto folder = std::make_shared<ScratchFolder>("adapter");
  const std::string adapter = joined(folder->path(), "adapter");
  checkpoint.write_adapter(adapter);
  log_info(place.model, ": the adapter of this checkpoint over ", base, ", the model that it was trained on");
  ModelSource source = open_model({base, adapter, place.tokenizer, place.unused});
  source.weights = {source.weights.get(), [folder, weights = source.weights](WeightSource*) {}};  // reads the folder
  source.name = name_of_place(base) + "-" + name_of_place(place.model);
  source.precision = checkpoint.precision();
  return source;
}

ModelSource open_checkpoint(const ModelPlace& place) {
  if (holds_adapter(place.model)) return open_adapter_checkpoint(place);
  const auto checkpoint = std::make_shared<const CheckpointExport>(place.model, place.base);
  const auto weights = checkpoint->weights();
  ModelSource source;
  source.config = checkpoint->model();
  source.weights = {weights.get(),
                    [checkpoint, weights](WeightSource*) {}};  // keeps alive the checkpoint that they read
  source.options = checkpoint->options();
  source.precision = checkpoint->precision();
  const TokenizerSource own = source.options.tokenizer;
  TokenizerSource other = find_tokenizer(place.tokenizer, place.adapter, own.settings);
  const bool same = other.settings == own.settings || is_same_place(other.settings, own.settings);
  if (same) other.chat_template = own.chat_template;
  if (other.tokenizer == own.settings) other.tokenizer = own.tokenizer;
  source.options.tokenizer = other;
  checkpoint->require_recorded(source.options, {place.tokenizer, place.adapter});
  return source;
}

}  // namespace

namespace {

/// The folder of the run to which a place belongs, or the place itself.
fs::path run_of_place(const std::string& path) {
  fs::path place = real_path(path);
  const auto last = [&] { return place.filename().string(); };
  while (place.has_parent_path() && (last().empty() || last() == "model" || last() == "adapter" || last() == "best" ||
                                     last() == "checkpoints" || last().starts_with("step-"))) {
    if (place == place.parent_path()) break;
    place = place.parent_path();
  }
  return place;
}

}  // namespace

std::string name_of_place(const std::string& path) { return run_of_place(path).filename(); }

std::optional<Config> config_of_place(const std::string& path) {
  const std::string run = run_of_place(path).string();
  if (!is_marked(run, Mark::run) || !is_own_file(joined(run, "config.toml"))) return std::nullopt;
  return config_of_run(run);
}

std::string resolve_adapter(const std::string& given, const std::string& option) {
  std::string path = adapter_of(given);
  if (path.empty() || is_adapter(path)) return path;
  if (const std::string why = why_no_adapter(path); !why.empty()) throw InputError(text(option, " ", path, ": ", why));
  return path;
}

ModelPlace resolve(const ModelPlace& place) {
  if (const auto run = resolve_adapter_run(place)) return *run;
  return {resolve_model(place.model), resolve_adapter(place.adapter, "--adapter"), place.tokenizer, place.unused,
          place.base};
}

void require_base_of_checkpoint(const ModelPlace& place) {
  if (!place.base.empty() && !is_checkpoint(place.model))
    throw InputError(text("--base is for checkpoints, and ", place.model, " is none: leave it out"));
}

ModelSource open_model(const ModelPlace& place) {
  ModelSource source = is_gguf_model(place.model)   ? open_gguf(place)
                       : is_checkpoint(place.model) ? open_checkpoint(place)
                                                    : open_directory(place);
  source.folder = place.model;
  source.name = name_of_place(place.model);
  for (const std::string& written : {place.model, place.adapter})
    if (const std::string precision = precision_of_run(written); !precision.empty()) source.precision = precision;
  if (source.precision.empty()) source.precision = precision_name(source.options.type);
  if (place.adapter.empty()) return source;
  const Model model = make_model(source.config);
  const auto adapter = open_adapter(place.adapter, model);
  const auto merged = std::make_shared<MergedWeights>(source.weights, adapter);
  if (source.stored) source.stored = with_adapter(*source.stored, model, adapter, merged);
  source.weights = merged;
  source.name += "-" + name_of_place(place.adapter);
  return source;
}

}  // namespace zero

#include "zero/train/model_source.h"

#include <algorithm>
#include <filesystem>

#include "comm/error.h"
#include "comm/log.h"
#include "models/adapted_weights.h"
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/train/checkpoint_export.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

std::string joined(const std::string& folder, const char* name) { return (fs::path(folder) / name).string(); }

std::string newest_checkpoint(const std::string& root) {
  FileCalls calls;
  const CheckpointFolders folders(calls, root);
  const auto steps = folders.steps();
  return steps.empty() ? "" : folders.path(steps.front());
}

/// Of a run's folder, or of its checkpoints/; empty where there is none.
std::string newest_checkpoint_of(const std::string& path) {
  const std::string newest = newest_checkpoint(path);
  return newest.empty() ? newest_checkpoint(joined(path, "checkpoints")) : newest;
}

/// A GGUF file by its name, or a folder with one.
bool holds_gguf(const std::string& path) {
  const auto is_gguf = [](const fs::path& file) { return file.extension() == ".gguf" && fs::is_regular_file(file); };
  if (!fs::is_directory(path)) return is_gguf(path);
  const fs::directory_iterator files(path);
  return std::any_of(begin(files), end(files), [&](const fs::directory_entry& file) { return is_gguf(file.path()); });
}

bool is_model(const std::string& folder) { return fs::exists(joined(folder, "config.json")); }
bool is_adapter(const std::string& folder) { return fs::exists(joined(folder, "adapter_config.json")); }

std::string resolve_model(const std::string& path) {
  if (is_model(path) || is_adapter(path) || CheckpointExport::is_checkpoint(path)) return path;
  if (is_model(joined(path, "model"))) return joined(path, "model");
  if (is_adapter(joined(path, "adapter")))
    throw InputError(text(path, ": is a run that made an adapter: name the model that it was trained on, and --adapter ", joined(path, "adapter")));
  const std::string newest = newest_checkpoint_of(path);
  return newest.empty() ? path : newest;
}

std::string resolve_adapter(const std::string& path) {
  if (path.empty() || is_adapter(path)) return path;
  if (is_adapter(joined(path, "adapter"))) return joined(path, "adapter");
  if (const std::string why = why_no_adapter(path); !why.empty()) throw InputError(text("--adapter ", path, ": ", why));
  return path;
}

/// "run1" of out/run1/model, out/run1/checkpoints/step-00000050 and out/run1 alike.
std::string name_of(const std::string& path) {
  fs::path place = fs::weakly_canonical(path);
  const auto last = [&] { return place.filename().string(); };
  while (place.has_parent_path() && (last().empty() || last() == "model" || last() == "adapter" || last() == "checkpoints" || last().starts_with("step-"))) {
    if (place == place.parent_path()) break;
    place = place.parent_path();
  }
  return last();
}

/// The type of the base's tensors.
at::ScalarType stored_type(const HfDirectory& directory) {
  const StoredTensor* embedding = directory.find("model.embed_tokens.weight");
  if (!embedding) embedding = directory.find("lm_head.weight");
  const auto type = embedding && embedding->type ? *embedding->type : at::kFloat;
  return type == at::kBFloat16 || type == at::kHalf ? type : at::kFloat;
}

ModelSource open_directory(const ModelPlace& place) {
  const auto directory = std::make_shared<HfDirectory>(place.model);
  ModelSource source;
  source.config = directory->config();
  source.weights = std::make_shared<HfWeights>(directory);
  source.options.type = stored_type(*directory);
  source.options.base = place.model;
  source.options.tokenizer = find_tokenizer(place.tokenizer, place.adapter, place.model);
  return source;
}

ModelSource open_checkpoint(const ModelPlace& place) {
  if (CheckpointExport::holds_adapter(place.model))
    throw InputError(text(place.model, ": is a checkpoint of an adapter; make one of it: zero_export ", place.model, " ADAPTER, then name the base model and --adapter ADAPTER"));
  const auto checkpoint = std::make_shared<const CheckpointExport>(place.model);
  const auto weights = checkpoint->weights();
  ModelSource source;
  source.config = checkpoint->model();
  source.weights = {weights.get(), [checkpoint, weights](WeightSource*) {}};   // which read from the checkpoint while they live
  source.options = checkpoint->options();
  const TokenizerSource own = source.options.tokenizer;
  TokenizerSource other = find_tokenizer(place.tokenizer, place.adapter, own.settings);
  if (other.settings == own.settings) other.chat_template = own.chat_template;
  if (other.tokenizer == own.settings) other.tokenizer = own.tokenizer;
  source.options.tokenizer = other;
  return source;
}

}  // namespace

ModelPlace resolve(const ModelPlace& place) { return {resolve_model(place.model), resolve_adapter(place.adapter), place.tokenizer}; }

std::string why_no_base(const std::string& path) {
  const std::string model = joined(path, "model"), adapter = joined(path, "adapter");
  if (is_model(path) || (!fs::is_directory(path) && !holds_gguf(path))) return "";
  if (holds_gguf(path)) return "holds a model as GGUF, which is for inference and is not read here; name the directory that the file was made of (config.json, *.safetensors)";
  if (is_adapter(path)) return "is an adapter: go on with it by [lora] adapter = \"" + path + "\", and name the model here that it was made for";
  if (is_model(model)) return "is the folder of a run: name its model, " + model;
  if (is_adapter(adapter)) return "is the folder of a run that made an adapter: go on with it by [lora] adapter = \"" + adapter + "\", and name the model here that it was made for";
  const std::string checkpoint = CheckpointExport::is_checkpoint(path) ? path : newest_checkpoint_of(path);
  if (checkpoint.empty()) return "";
  const bool adapters = CheckpointExport::holds_adapter(checkpoint);
  return text("holds a checkpoint, and a run begins with ", adapters ? "a model and perhaps an adapter: make one of it, zero_export " : "a model: make one of it, zero_export ", checkpoint,
              adapters ? " ADAPTER, and name it by [lora] adapter" : " MODEL, and name MODEL here", "; or go on with that run by its own configuration and --resume");
}

std::string why_no_adapter(const std::string& path) {
  const std::string adapter = joined(path, "adapter");
  if (is_adapter(path)) return "";
  if (is_adapter(adapter)) return "is the folder of a run: name its adapter, " + adapter;
  if (is_model(path) || is_model(joined(path, "model"))) return "holds a model, no adapter: name a directory with adapter_config.json";
  const std::string checkpoint = CheckpointExport::is_checkpoint(path) ? path : newest_checkpoint_of(path);
  if (checkpoint.empty()) return "";
  if (!CheckpointExport::holds_adapter(checkpoint)) return "holds a checkpoint of a model, no adapter: name a directory with adapter_config.json";
  return "holds a checkpoint, and no adapter yet: make one of it, zero_export " + checkpoint + " ADAPTER, and name ADAPTER here";
}

ModelSource open_model(const ModelPlace& place) {
  ModelSource source = CheckpointExport::is_checkpoint(place.model) ? open_checkpoint(place) : open_directory(place);
  source.folder = place.model;
  source.name = name_of(place.model);
  if (place.adapter.empty()) return source;
  source.weights = std::make_shared<MergedWeights>(source.weights, std::make_shared<PeftDirectory>(place.adapter));
  source.name += "-" + name_of(place.adapter);
  return source;
}

}  // namespace zero

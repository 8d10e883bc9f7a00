#include "zero/config/model_paths.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/own_files.h"
#include "base/log.h"
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

std::string joined(const std::string& folder, const char* name) { return (fs::path(folder) / name).string(); }

std::string newest_checkpoint(const std::string& root, FileCalls& calls) {
  const CheckpointFolders folders(calls, root);
  const auto steps = folders.steps();
  return steps.empty() ? "" : folders.path(steps.front());
}

}  // namespace

std::string gguf_in(const std::string& folder) {
  std::pair<std::int64_t, std::string> largest;
  for (const std::string& name : names_in(folder)) {
    if (!name.ends_with(".gguf")) continue;
    const FileFacts facts = facts_of(joined(folder, name.c_str()));
    if (facts.kind == FileFacts::Kind::file) largest = std::max(largest, {facts.bytes, joined(folder, name.c_str())});
  }
  return largest.second;
}

bool is_model(const std::string& folder) { return is_there(joined(folder, "config.json")); }
bool is_adapter(const std::string& folder) { return is_there(joined(folder, "adapter_config.json")); }
bool is_checkpoint(const std::string& folder) { return is_there(joined(folder, "manifest.json")); }

std::string adapter_of(const std::string& path) {
  const std::string made = joined(path, "adapter");
  return !path.empty() && !is_adapter(path) && is_adapter(made) ? made : path;
}

bool holds_adapter(const std::string& checkpoint) {
  require_own_files(checkpoint);
  try {
    FileCalls calls;
    return parse_config(read_manifest(calls, checkpoint).run.configuration, checkpoint + "/manifest.json")
        .lora.has_value();
  } catch (const Error& error) {  // not usable as an input
    throw InputError(error.what());
  }
}

std::string newest_checkpoint_of(const std::string& path, FileCalls& calls) {
  const std::string newest = newest_checkpoint(path, calls);
  return newest.empty() ? newest_checkpoint(joined(path, "checkpoints"), calls) : newest;
}

std::string newest_checkpoint_of(const std::string& path) {
  FileCalls calls;
  return newest_checkpoint_of(path, calls);
}

std::string hub_hint(const std::string& path) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == path.npos || path.starts_with(".") || slash + 1 == path.size()) return "";
  for (std::size_t i = 0; i < path.size(); ++i)
    if (i != slash && !is_part(path[i])) return "";
  if (is_there(path.substr(0, slash))) return "";
  return "; if it is a model of Hugging Face's hub, fetch it first: zero_fetch " + path + " --to " + path;
}

std::string why_no_base(const std::string& path) {
  const std::string model = joined(path, "model"), adapter = joined(path, "adapter");
  if (is_model(path) || !is_folder(path)) return "";
  if (const std::string file = gguf_in(path); !file.empty()) return "holds a model as GGUF: name the file, " + file;
  if (is_adapter(path))
    return "is an adapter: go on with it by [lora] adapter = \"" + path +
           "\", and name the model here that it was made for";
  if (is_model(model)) return "is the folder of a run: name its model, " + model;
  if (is_adapter(adapter))
    return "is the folder of a run that made an adapter: go on with it by [lora] adapter = \"" + adapter +
           "\", and name the model here that it was made for";
  const std::string checkpoint = is_checkpoint(path) ? path : newest_checkpoint_of(path);
  if (checkpoint.empty()) return "";
  const bool adapters = holds_adapter(checkpoint);
  return text("holds a checkpoint, and a run begins with ",
              adapters ? "a model and perhaps an adapter: make one of it, zero_export "
                       : "a model: make one of it, zero_export ",
              checkpoint, adapters ? " ADAPTER, and name it by [lora] adapter" : " MODEL, and name MODEL here",
              "; or go on with that run by its own configuration and --resume");
}

std::string why_no_adapter(const std::string& path) {
  if (is_adapter(path)) return "";
  if (is_model(path) || is_model(joined(path, "model")))
    return "holds a model, no adapter: name a directory with adapter_config.json";
  const std::string checkpoint = is_checkpoint(path) ? path : newest_checkpoint_of(path);
  if (checkpoint.empty()) return "";
  if (!holds_adapter(checkpoint))
    return "holds a checkpoint of a model, no adapter: name a directory with adapter_config.json";
  return "holds a checkpoint, and no adapter yet: make one of it, zero_export " + checkpoint +
         " ADAPTER, and name ADAPTER here";
}

}  // namespace zero

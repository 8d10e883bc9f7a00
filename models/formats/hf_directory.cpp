#include "models/formats/hf_directory.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/own_files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/families/config_json.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

/// The path of a shard named in an index. The index is untrusted, so a name must be a single path component. A link
/// under that name is followed, like a single file would be.
std::string shard_path(const std::string& folder, const std::string& name, const std::string& index_path) {
  const auto refuse = [&](const char* why) {
    throw InputError(text(index_path, ": shard name \"", name.substr(0, 200), "\" ", why));
  };
  if (name.empty() || name == "." || name == ".." || name.find_first_of("/\\") != std::string::npos ||
      name.find('\0') != std::string::npos)
    refuse("is not a plain file name");
  const std::string path = (fs::path(folder) / name).string();
  if (!is_there(path)) refuse("is missing in the folder");
  return path;
}

constexpr std::int64_t max_config_bytes = 1 << 20;

}  // namespace

bool is_config_file(const std::string& path) { return fs::path(path).extension() == ".json" && is_file(path); }

ModelConfig read_model_config(const std::string& path) {
  if (is_config_file(path)) return parse_model_config(read_text_file(path, max_config_bytes), path);
  if (fs::path(path).extension() == ".gguf" && is_file(path))
    throw InputError(text(path, ": is a GGUF file, where a model directory is needed"));
  if (!is_folder(path)) throw InputError(text(path, ": no such model directory"));
  const std::string config_path = path + "/config.json";
  if (!is_there(config_path) && is_there(path + "/adapter_config.json"))
    throw InputError(text(path, ": is an adapter; name its base model's directory here, and this one as the adapter"));
  if (!is_there(config_path))
    throw InputError(text(path, ": has no config.json; it must be a Hugging Face model directory"));
  require_own_files(path);
  return parse_model_config(read_text_file(config_path, max_config_bytes), config_path);
}

HfDirectory::HfDirectory(const std::string& folder) : folder_(folder), config_(read_model_config(folder)) {
  const std::string single = folder + "/" + single_name;
  const std::string index = folder + "/" + index_name;
  if (is_there(single)) {
    files_.push_back(std::make_unique<SafetensorsFile>(single));
    for (const auto& tensor : files_.back()->tensors()) where_.emplace(tensor.name, files_.back().get());
  } else if (is_there(index)) {
    open_shards(index);
  } else {
    throw InputError(text(folder, ": holds neither ", single_name, " nor ", index_name,
                          "; other formats are not read, transformers' save_pretrained writes this one"));
  }
}

bool HfDirectory::holds_weights(const std::string& folder) {
  return is_there(folder + "/" + single_name) || is_there(folder + "/" + index_name);
}

void HfDirectory::open_shards(const std::string& index_path) {
  const auto index = parse_json(read_text_file(index_path), index_path, {.depth = 8});
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw InputError(text(index_path, ": weight_map, an object from tensor to shard, is missing"));
  std::unordered_map<std::string, const SafetensorsFile*> open;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string())
      throw InputError(text(index_path, ": the shard of \"", tensor.substr(0, 200), "\" must be a string"));
    const auto& name = shard.get_ref<const std::string&>();
    auto& file = open[name];
    if (!file) {
      files_.push_back(std::make_unique<SafetensorsFile>(shard_path(folder_, name, index_path)));
      file = files_.back().get();
    }
    if (!file->find(tensor))
      throw InputError(
          text(index_path, ": tensor \"", tensor.substr(0, 200), "\" should be in ", name, ", but is not"));
    where_.emplace(tensor, file);
  }
}

std::vector<std::string> HfDirectory::names() const {
  std::vector<std::string> all;
  all.reserve(where_.size());
  for (const auto& [name, file] : where_) all.push_back(name);
  std::sort(all.begin(), all.end());
  return all;
}

const StoredTensor* HfDirectory::find(const std::string& name) const {
  const auto place = where_.find(name);
  return place == where_.end() ? nullptr : place->second->find(name);
}

void HfDirectory::read(const std::string& name, std::int64_t begin, std::int64_t count, const at::Tensor& out) const {
  const auto place = where_.find(name);
  if (place == where_.end()) throw InputError(text(folder_, ": has no tensor \"", name, "\""));
  place->second->read(name, begin, count, out);
}

}  // namespace zero

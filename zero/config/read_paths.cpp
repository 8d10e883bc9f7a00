#include "zero/config/read_paths.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/safetensors.h"
#include "models/text/chat_template.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

bool is_at_or_below(const fs::path& path, const fs::path& place) {
  return std::mismatch(place.begin(), place.end(), path.begin(), path.end()).first == place.end();
}

bool reaches(const fs::path& path, const fs::path& target) {
  std::error_code none;
  const fs::path real = fs::weakly_canonical(path, none);
  return (!real.empty() && is_at_or_below(real, target)) || fs::equivalent(path, target, none);
}

}  // namespace

std::vector<ReadPath> read_paths_of(const Config& config) {
  std::vector<ReadPath> reads{{"the configuration", config.source}};
  const auto add = [&](const char* name, const std::string& path) {
    if (!path.empty()) reads.push_back({name, path});
  };
  add("model.path", config.model.path.value_or(""));
  if (config.lora) add("lora.adapter", config.lora->adapter);
  add("data.tokenizer", config.data.tokenizer);
  if (!ChatTemplate::is_known(config.data.chat_template)) add("data.chat_template", config.data.chat_template);
  for (const std::string& file : config.data.train) add("data.train", file);
  for (const std::string& file : config.data.validation) add("data.validation", file);
  return reads;
}

std::optional<ReadPath> first_read_of(const std::vector<ReadPath>& reads, const std::string& target) {
  std::error_code none;
  const fs::path place = fs::weakly_canonical(target, none);
  if (place.empty() || !fs::exists(place, none)) return std::nullopt;
  for (const ReadPath& read : reads) {
    if (read.path.empty()) continue;
    if (reaches(read.path, place)) return read;
    for (const auto& entry : fs::directory_iterator(read.path, none))
      if (!fs::is_directory(entry.path(), none) && reaches(entry.path(), place))
        return ReadPath{read.name, entry.path().string()};
  }
  return std::nullopt;
}

void check_tensor_file(const std::string& where, const std::string& path, const std::vector<ReadPath>& reads) {
  if (const auto read = first_read_of(reads, path))
    throw InputError(text(where, ": ", path, " would be replaced, and ", read->path, " (", read->name,
                          ") is read there: name another file"));
  std::error_code none;
  if (!fs::exists(path, none)) return;
  try {
    const SafetensorsFile earlier(path);
  } catch (const InputError&) {
    throw InputError(text(where, ": ", path,
                          " is there and holds no tensors, so it is not replaced: name another file, or remove it"));
  }
}

}  // namespace zero

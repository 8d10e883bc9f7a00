#include "zero/config/read_paths.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
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
  const fs::path real = real_path(path.string());
  return (!real.empty() && is_at_or_below(real, target)) || is_same_place(path.string(), target.string());
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
  add("metrics.samples", config.metrics.samples);
  return reads;
}

std::optional<ReadPath> first_read_of(const std::vector<ReadPath>& reads, const std::string& target) {
  if (reads.empty()) return std::nullopt;
  const fs::path place = real_path(target);
  if (place.empty() || !is_there(place.string())) return std::nullopt;
  for (const ReadPath& read : reads) {
    if (read.path.empty()) continue;
    if (reaches(read.path, place)) return read;
    for (const std::string& name : names_in(read.path))
      if (const std::string entry = fs::path(read.path) / name; !is_folder(entry) && reaches(entry, place))
        return ReadPath{read.name, entry};
  }
  return std::nullopt;
}

void check_tensor_file(const std::string& where, const std::string& path, const std::vector<ReadPath>& reads) {
  if (const auto read = first_read_of(reads, path))
    throw InputError(text(where, ": ", path, " would be replaced, and ", read->path, " (", read->name,
                          ") is read there: name another file"));
  if (!is_there(path)) return;
  try {
    const SafetensorsFile earlier(path);
  } catch (const UnreadableError&) {
    throw;
  } catch (const InputError&) {
    throw InputError(text(where, ": ", path,
                          " is there and holds no tensors, so it is not replaced: name another file, or remove it"));
  }
}

}  // namespace zero

#include "zero/fetch/selection.h"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr const char* whole = "model.safetensors";
constexpr const char* index_of_shards = "model.safetensors.index.json";
constexpr const char* shards = "model-*-of-*.safetensors";
constexpr const char* adapter = "adapter_model.safetensors";
constexpr std::size_t most_named = 5;

bool matches(const std::string& path, std::string glob) {
  if (glob.ends_with("/")) glob += "*";
  return ::fnmatch(glob.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
}

bool matches_any(const std::string& path, const std::vector<std::string>& globs) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return matches(path, glob); });
}

bool is_at_top(const std::string& path) { return path.find('/') == path.npos; }

bool holds(const std::vector<HubFile>& files, const char* path) {
  return std::any_of(files.begin(), files.end(), [&](const HubFile& file) { return file.path == path; });
}

/// The weights that zero opens, in one form only.
std::vector<std::string> weights_of(const std::vector<HubFile>& files) {
  if (holds(files, whole)) return {whole, adapter};
  if (holds(files, index_of_shards)) return {index_of_shards, shards, adapter};
  return {adapter};
}

bool is_default(const std::string& path, const std::vector<std::string>& weights) {
  static const std::vector<std::string> others{
      "config.json",     "generation_config.json", "adapter_config.json", "tokenizer.json", "tokenizer_config.json",
      "tokenizer.model", "spiece.model",           "added_tokens.json",   "vocab.json",     "special_tokens_map.json",
      "merges.txt",      "chat_template.jinja",    "chat_template.json",  "LICENSE*",       "NOTICE*",
      "README*"};
  if (matches(path, "additional_chat_templates/*.jinja")) return true;
  return is_at_top(path) && (matches_any(path, weights) || matches_any(path, others));
}

bool is_weights(const std::string& path) {
  static const std::vector<std::string> globs{"*.safetensors", "*.gguf", "*.bin",     "*.pt",  "*.pth",
                                              "*.ckpt",        "*.h5",   "*.msgpack", "*.onnx"};
  return matches_any(path, globs);
}

/// "a.gguf, b.gguf and 7 more"
std::string names_of(const std::vector<std::string>& paths) {
  std::string words;
  for (std::size_t i = 0; i < std::min(paths.size(), most_named); ++i) words += (i ? ", " : "") + paths[i];
  return paths.size() > most_named ? text(words, " and ", paths.size() - most_named, " more") : words;
}

[[noreturn]] void refuse_without_weights(const std::vector<HubFile>& files, const Repository& repository) {
  std::vector<std::string> other;
  for (const HubFile& file : files)
    if (is_weights(file.path)) other.push_back(file.path);
  throw InputError(text(repository.name, ": has no ", whole, " and no ", index_of_shards, " at its top; ",
                        other.empty() ? "it holds no weights; is it a data set (--dataset)? --include fetches its files"
                                      : "its weights are " + names_of(other) +
                                            ". Choose files by --include, such as a GGUF file, which zero opens too"));
}

bool is_defining(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = std::string_view(path).substr(slash == path.npos ? 0 : slash + 1);
  return name == "config.json" || name == "adapter_config.json";
}

}  // namespace

std::vector<HubFile> select_files(const std::vector<HubFile>& files, const Selection& selection,
                                  const Repository& repository) {
  const bool by_default = selection.include.empty(), model = repository.kind == RepositoryKind::model;
  const std::vector<std::string> weights = weights_of(files);
  std::vector<HubFile> selected;
  for (const HubFile& file : files) {
    const bool included = !by_default ? matches_any(file.path, selection.include)
                          : model     ? is_default(file.path, weights)
                                      : file.path != ".gitattributes";
    if (included && !matches_any(file.path, selection.exclude)) selected.push_back(file);
  }
  if (by_default && model && weights.size() == 1 && !holds(files, adapter)) refuse_without_weights(files, repository);
  if (selected.empty())
    throw InputError(text(repository.name, ": none of its ", files.size(), " files is selected by --include and ",
                          "--exclude; their globs match whole paths, as \"*.json\" or \"folder/*\""));
  std::stable_sort(selected.begin(), selected.end(), [](const HubFile& a, const HubFile& b) {
    return std::pair(is_defining(a.path), std::string_view(a.path)) <
           std::pair(is_defining(b.path), std::string_view(b.path));
  });
  return selected;
}

}  // namespace zero

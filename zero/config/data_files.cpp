#include "zero/config/data_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/config/file_format.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& name : names_in(folder)) files.push_back((fs::path(folder) / name).string());
  return files;
}

/// Expands a pattern like a shell.
std::vector<std::string> files_like(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

/// Files of the most common kind: others in the same folder rarely belong to the same data.
std::vector<std::string> data_files_of(const std::vector<std::string>& files) {
  std::vector<std::string> most;
  for (const char* kind : {"txt", "jsonl", "bin"}) {
    std::vector<std::string> alike;
    for (const std::string& file : files)
      if (data_kind(file) == kind && is_file(file)) alike.push_back(file);
    if (alike.size() > most.size()) most = alike;
  }
  return most;
}

/// For a folder or a pattern without data files: how the other files are converted, as an example.
std::string conversion_of_all(const std::vector<std::string>& others) {
  for (const std::string& file : others)
    if (const std::string conversion = conversion_by_name(file); !conversion.empty())
      return text("; ", file, " is none: ", conversion);
  return "";
}

/// The end of "list the files".
std::string list_of(const std::vector<std::string>& others) {
  std::vector<std::string> files = data_files_of(others);
  constexpr std::size_t most = 3;
  const std::size_t all = files.size();
  if (all == 0) return " that end in .txt, .jsonl, .json or .bin" + conversion_of_all(others);
  files.resize(std::min(all, most));
  return ": " + toml_text(files) + (all > most ? text(" and ", all - most, " more") : "");
}

/// Returns a remedy for a name of no known kind, after "; "; empty if there is none.
std::string remedy_of(const std::string& path) {
  if (const std::string conversion = conversion_by_name(path); !conversion.empty()) return "; " + conversion;
  const bool like_the_hub = std::count(path.begin(), path.end(), '/') == 1 && path.front() != '/' && path.back() != '/';
  if (like_the_hub && !is_there(fs::path(path).parent_path()))
    return text("; if it is a data set of Hugging Face's hub, fetch it first: zero_fetch ", path, " --dataset --to ",
                fs::path(path).filename().string());
  return "";
}

}  // namespace

std::string data_kind(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".json") return "jsonl";
  for (const char* kind : {"txt", "jsonl", "bin"})
    if (extension == std::string(".") + kind) return kind;
  return "";
}

bool any_holds_examples(const std::vector<std::string>& files) {
  return std::ranges::any_of(files, [](const std::string& path) { return data_kind(path) == "jsonl"; });
}

std::string why_no_data_name(const std::string& path) {
  if (is_folder(path)) return "is not a file, and folders are not expanded; list the files" + list_of(files_in(path));
  if (path.find_first_of("*?[") != path.npos && !is_there(path))
    return "does not exist, and patterns are not expanded; list the files" + list_of(files_like(path));
  if (data_kind(path).empty())
    return "must end in .txt, .jsonl, .json or .bin: the ending decides how it is read" + remedy_of(path);
  return "";
}

std::string why_no_data_content(const std::string& path) {
  return data_kind(path) == "bin" ? "" : conversion_by_content(path);
}

}  // namespace zero

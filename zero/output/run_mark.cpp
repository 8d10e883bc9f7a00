#include "zero/output/run_mark.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <vector>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/json_text.h"
#include "models/formats/tokenizer_files.h"
#include "zero/checkpoint/checkpoint_folders.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr const char* mark_text =
    "Written by zero_train or zero_export, which may replace the files that they wrote here.\n";

const char* name_of(Mark mark) { return mark == Mark::run ? ".zero_run" : ".zero_result"; }

bool is_checkpoint(const std::string& name) {
  static const std::regex folder(R"(step-\d{8,18}(\.(tmp|damaged|later|replaced))?)");
  return std::regex_match(name, folder);
}

void remove_one(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw Error(path.string() + " of the former run cannot be removed: " + error.message());
}

std::vector<fs::path> entries_of(const fs::path& folder, const std::function<bool(const std::string&)>& wanted) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (wanted(entry.path().filename().string())) found.push_back(entry.path());
  return found;
}

void remove_empty(const fs::path& folder) {
  std::error_code none;
  if (fs::is_empty(folder, none) && !none && !fs::is_symlink(folder)) remove_one(folder);
}

}  // namespace

void mark_folder(const std::string& folder, Mark mark) {
  if (is_marked(folder, mark)) return;
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (error) throw Error(folder + " cannot be made: " + error.message());
  try {
    write_text_file(folder + "/" + name_of(mark), mark_text);
  } catch (...) {
    if (made) fs::remove(folder, error);
    throw;
  }
}

bool is_marked(const std::string& folder, Mark mark) {
  std::error_code none;
  return fs::is_regular_file(fs::symlink_status(fs::path(folder) / name_of(mark), none));
}

bool is_result_file(const std::string& name) {
  static const std::regex weights(R"(model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?)");
  const auto& tokenizer = tokenizer_file_names();
  return name == "config.json" || name == "generation_config.json" || name == "adapter_config.json" ||
         name == "adapter_model.safetensors" ||
         std::find(tokenizer.begin(), tokenizer.end(), name) != tokenizer.end() || std::regex_match(name, weights) ||
         is_unpublished(name);
}

void clear_result_folder(const std::string& folder) {
  for (const fs::path& path : entries_of(folder, is_result_file))
    if (!fs::is_directory(fs::symlink_status(path))) remove_one(path);
  const std::string mark = name_of(Mark::result);
  // Beside other people's files it stays: the next run may write here again.
  if (entries_of(folder, [&](const std::string& name) { return name != mark; }).empty() &&
      is_marked(folder, Mark::result))
    remove_one(fs::path(folder) / mark);
  remove_empty(folder);
}

void clear_checkpoints(const std::string& folder) {
  FileCalls calls;
  CheckpointFolders folders(calls, folder);
  for (const fs::path& checkpoint : entries_of(folder, is_checkpoint))
    if (!fs::is_regular_file(fs::symlink_status(checkpoint))) folders.remove(checkpoint.string());
  remove_empty(folder);
}

void clear_unpublished(const std::string& folder) {
  for (const fs::path& path : entries_of(folder, is_unpublished)) remove_one(path);
}

}  // namespace zero

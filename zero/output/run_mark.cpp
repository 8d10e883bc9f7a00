#include "zero/output/run_mark.h"

#include <algorithm>
#include <functional>
#include <iomanip>
#include <random>
#include <regex>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/files/make_folder.h"
#include "base/files/new_file.h"
#include "base/log.h"
#include "models/formats/tokenizer_files.h"
#include "zero/checkpoint/checkpoint_folders.h"

namespace zero {
namespace {

constexpr std::string_view mark_text =
    "Written by zero_train or zero_export, which may replace the files that they wrote here.\n";
constexpr std::string_view id_word = "Run ";
constexpr std::string_view saved_text = "The run has written checkpoints.\n";

std::string path_of(const std::string& folder, Mark mark) {
  return folder + (mark == Mark::run ? "/.zero_run" : "/.zero_result");
}

bool is_checkpoint_name(const std::string& name) {
  static const std::regex folder(R"(step-\d{8,18}(\.(tmp|damaged|later|replaced))?)");
  return std::regex_match(name, folder);
}

FileFacts::Kind kind_of(const std::string& path, FileCalls& calls) { return facts_of(path, calls, Links::kept).kind; }

/// Paths of the entries with matching names.
std::vector<std::string> entries_of(const std::string& folder, const std::function<bool(const std::string&)>& wanted,
                                    FileCalls& calls) {
  std::vector<std::string> found;
  for (const std::string& name : names_in(folder, calls))
    if (wanted(name)) found.push_back(folder + "/" + name);
  return found;
}

void remove_empty(const std::string& folder, FileCalls& calls) {
  if (kind_of(folder, calls) == FileFacts::Kind::directory && names_in(folder, calls).empty())
    remove_file(folder, calls);
}

/// The contents of the mark in a run's folder; empty if none.
std::string mark_of_run(const std::string& folder, FileCalls& calls) {
  if (!is_marked(folder, Mark::run, calls)) return "";
  const File file = File::open(path_of(folder, Mark::run), calls);
  std::string content(4096, '\0');
  content.resize(std::size_t(file.read_up_to(content.data(), std::int64_t(content.size()), 0)));
  return content;
}

void write_text(const std::string& path, const std::string& content, FileCalls& calls) {
  NewFile file(path, calls);
  file.append(content.data(), std::int64_t(content.size()));
  file.publish();
}

}  // namespace

void mark_folder(const std::string& folder, Mark mark, FileCalls& calls) {
  if (is_marked(folder, mark, calls)) return;
  const bool made = make_folder(calls, folder);
  try {
    write_text(path_of(folder, mark), std::string(mark_text), calls);
  } catch (...) {
    if (made) calls.remove(folder);
    throw;
  }
}

bool is_marked(const std::string& folder, Mark mark, FileCalls& calls) {
  return kind_of(path_of(folder, mark), calls) == FileFacts::Kind::file;
}

bool is_marked(const std::string& folder, Mark mark) {
  FileCalls calls;
  return is_marked(folder, mark, calls);
}

void mark_run(const std::string& folder, const std::string& id, FileCalls& calls) {
  write_text(path_of(folder, Mark::run), text(mark_text, id_word, id, "\n"), calls);
}

void note_saved(const std::string& folder, FileCalls& calls) {
  const std::string mark = mark_of_run(folder, calls);
  if (!mark.ends_with(saved_text))
    write_text(path_of(folder, Mark::run), (mark.empty() ? std::string(mark_text) : mark) + std::string(saved_text),
               calls);
}

bool has_saved(const std::string& folder, FileCalls& calls) { return mark_of_run(folder, calls).ends_with(saved_text); }

std::string new_run_id() {
  std::random_device bits;
  return text(std::hex, std::setfill('0'), std::setw(8), bits(), std::setw(8), bits());
}

std::string run_id_of(const std::string& folder, FileCalls& calls) {
  std::istringstream lines(mark_of_run(folder, calls));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(id_word)) return line.substr(id_word.size());
  return "";
}

bool is_result_file(const std::string& name) {
  static const std::regex weights(R"(model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?)");
  const auto& tokenizer = tokenizer_file_names();
  return name == "config.json" || name == "generation_config.json" || name == "adapter_config.json" ||
         name == "adapter_model.safetensors" || name == "validation.json" ||
         std::find(tokenizer.begin(), tokenizer.end(), name) != tokenizer.end() || std::regex_match(name, weights) ||
         is_unpublished(name);
}

void clear_result_folder(const std::string& folder, FileCalls& calls) {
  for (const std::string& path : entries_of(folder, is_result_file, calls))
    if (kind_of(path, calls) != FileFacts::Kind::directory) remove_file(path, calls);
  const std::string mark = path_of(folder, Mark::result);
  // The mark stays if foreign files are left, so that the next run may write here again.
  const std::vector<std::string> left = names_in(folder, calls);
  if (left.size() == 1 && folder + "/" + left.front() == mark && is_marked(folder, Mark::result, calls))
    remove_file(mark, calls);
  remove_empty(folder, calls);
}

void clear_checkpoints(const std::string& folder, FileCalls& calls) {
  CheckpointFolders folders(calls, folder);
  for (const std::string& checkpoint : entries_of(folder, is_checkpoint_name, calls))
    if (kind_of(checkpoint, calls) != FileFacts::Kind::file) folders.remove(checkpoint);
  remove_empty(folder, calls);
}

bool is_empty_but_for_unpublished(const std::string& folder, FileCalls& calls) {
  return entries_of(folder, std::not_fn(is_unpublished), calls).empty();
}

void clear_unpublished(const std::string& folder, FileCalls& calls) {
  for (const std::string& path : entries_of(folder, is_unpublished, calls)) remove_file(path, calls);
}

void remove_file(const std::string& path, FileCalls& calls) {
  if (calls.remove(path) < 0 && errno != ENOENT) fail_call(path, "removed");
}

}  // namespace zero

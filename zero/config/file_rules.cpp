// Rules about the files and folders that a configuration names.
#include <linux/limits.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/formats/base_model.h"
#include "models/formats/hf_directory.h"
#include "zero/config/config.h"
#include "zero/config/config_rules.h"
#include "zero/config/data_files.h"
#include "zero/config/mistakes.h"
#include "zero/config/model_paths.h"
#include "zero/config/nearest_key.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const Config& config, const std::string& key, const std::string& path,
                         const std::string& rule) {
  throw InputError(where_of(config, key, path) + " " + rule);
}

// Returns the name in the same folder that a misspelt one probably means.
std::string nearest_name(const std::string& path) {
  constexpr std::size_t most = 10'000;  // names in a folder to compare
  const fs::path folder = fs::path(path).parent_path();
  std::vector<std::string> names = names_in(folder.empty() ? "." : folder.string());
  if (names.size() > most) names.resize(most);
  const std::string near = nearest_key(fs::path(path).filename().string(), names);
  return near.empty() ? "" : "; the nearest name there is " + (folder / near).string();
}

void need(const Config& config, const std::string& key, const std::string& path, const std::string& hint = "") {
  if (is_there(path)) return;
  refuse(config, key, path,
         "does not exist (paths are relative to the working directory)" + (hint.empty() ? nearest_name(path) : hint));
}

void need_file(const Config& config, const std::string& key, const std::string& path) {
  need(config, key, path);
  if (!is_file(path)) refuse(config, key, path, "is not a file");
  if (!may_access(path, R_OK)) refuse(config, key, path, "is a file that you may not read");
}

void need_data(const Config& config, const std::string& key, const std::string& path) {
  if (const std::string why = why_no_data_name(path); !why.empty()) refuse(config, key, path, why);
  need_file(config, key, path);
  if (facts_of(path).bytes == 0) refuse(config, key, path, "is empty: take it out, or name a file with data");
  if (const std::string why = why_no_data_content(path); !why.empty()) refuse(config, key, path, why);
}

void need_directory(const Config& config, const std::string& key, const std::string& path) {
  need(config, key, path, hub_hint(path));
  if (!is_folder(path)) refuse(config, key, path, "is not a directory");
  if (!may_access(path, R_OK | X_OK)) refuse(config, key, path, "is a directory that you may not read");
}

// The output directory is created later. The nearest existing parent folder shows whether that will work.
void need_place_for(const Config& config, const std::string& key, const std::string& path) {
  std::error_code ignored;
  fs::path part = fs::absolute(path, ignored);
  if (part.lexically_normal() == part.root_path())
    refuse(config, key, path, "is the root of the file system; name a folder of its own");
  for (const fs::path& name : part)
    if (name.native().size() > NAME_MAX)
      throw InputError(text(config.where(key), ": a name of ", name.native().size(),
                            " characters is longer than file systems allow"));
  while (!is_there(part) && part.has_relative_path()) part = part.parent_path();
  if (!is_folder(part)) refuse(config, key, part.filename().string(), "is not a directory");
  if (!may_access(part, W_OK | X_OK)) refuse(config, key, part.string(), "is a directory that you may not write to");
  if (belongs_to_kernel(part)) refuse(config, key, part.string(), "belongs to the kernel and holds no files of users");
}

// The run makes this folder, but not those above it: a mistyped disk would put the states on another one.
void need_disk(const Config& config, const std::string& key, const std::string& path) {
  need_place_for(config, key, path);
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  const fs::path output = fs::absolute(config.job.output_dir, ignored).lexically_normal();
  const auto lies_within = [](const fs::path& path, const fs::path& above) {
    return std::mismatch(above.begin(), above.end(), path.begin(), path.end()).first == above.end();
  };
  // The output directory is made with all its parents.
  const bool is_made = lies_within(folder, output) || lies_within(output, folder.parent_path());
  if (!is_made && !is_there(folder.parent_path()))
    refuse(config, key, folder.parent_path().string(),
           "does not exist: only the last folder of the path is made; name a folder on the disk to use");
}

// The dump needs an existing folder; otherwise it would be lost after step 1.
void need_place_of_file(const Config& config, const std::string& key, const std::string& path) {
  if (is_folder(path)) refuse(config, key, path, "is a directory; name a file");
  std::error_code ignored;
  const fs::path folder = fs::absolute(path, ignored).parent_path();
  if (!is_folder(folder)) refuse(config, key, folder.string(), "is no directory; make it first");
  if (!may_access(folder, W_OK | X_OK))
    refuse(config, key, folder.string(), "is a directory that you may not write to");
}

void need_model(const Config& config, const std::string& key, const std::string& path) {
  need(config, key, path, hub_hint(path));
  if (is_folder(path)) need_directory(config, key, path);  // before looking into it
  if (is_gguf_model(path)) return need_file(config, key, path);
  if (is_config_file(path))
    refuse(
        config, key, path,
        text(
            "is the config.json of a model, which serves --dry-run alone: a run needs its weights, so name the model's "
            "directory; or begin with random weights: [model] preset = \"",
            path, "\""));
  if (const std::string why = why_no_base(path); !why.empty()) refuse(config, key, path, why);
  need_directory(config, key, path);
  if (!is_there(fs::path(path) / "config.json"))
    refuse(config, key, path, "has no config.json; it must be a Hugging Face model directory");
}

// An estimate needs only config.json, which may be named directly.
void need_model_sizes(const Config& config, const std::string& key, const std::string& path) {
  if (is_config_file(path))
    need_file(config, key, path);
  else
    need_model(config, key, path);
}

void need_adapter(const Config& config, const std::string& key, const std::string& path) {
  need_directory(config, key, path);  // before looking into it
  if (const std::string why = why_no_adapter(path); !why.empty()) refuse(config, key, path, why);
  if (!is_there(fs::path(path) / "adapter_config.json"))
    refuse(config, key, path,
           "has no adapter_config.json; it must be a directory that PEFT or zero_train has written an adapter to");
}

// Throws InputError for a pattern that a shell would have expanded.
void need_whole(const Config& config, const std::string& key, const std::string& path) {
  if ((path == "~" || path.starts_with("~/") || path.starts_with("$")) && !is_there(path))
    throw InputError(config.where(key) + ": ~ and variables are not expanded; write the whole path");
}

void need_tokenizer(const Config& config, const std::string& key, const std::string& path) {
  if (!is_folder(path)) need_file(config, key, path);
}

}  // namespace

// If a folder's file system hangs, waits only for the first file, since data may be a thousand files.
void check_files(const Config& config, FileNeed wanted) {
  Mistakes mistakes;
  std::set<fs::path> silent;
  const auto check = [&](const auto& rule, const std::string& key, const std::string& path) {
    const fs::path folder = fs::path(path).parent_path();
    if (path.empty() || silent.contains(folder)) return;
    mistakes.allow([&] {
      try {
        need_whole(config, key, path);
        rule(config, key, path);
      } catch (const UnreadableError& error) {
        silent.insert(folder);
        throw InputError(config.where(key) + ": " + error.what());
      }
    });
  };
  const bool is_here = wanted != FileNeed::inputs;
  if (is_here) check(need_place_for, "job.output_dir", config.job.output_dir);
  check(wanted == FileNeed::run ? need_model : need_model_sizes, "model.path", config.model.path.value_or(""));
  for (const std::string& file : config.data.train) check(need_data, "data.train", file);
  for (const std::string& file : config.data.validation) check(need_data, "data.validation", file);
  check(need_tokenizer, "data.tokenizer", config.data.tokenizer);
  if (config.lora) check(need_adapter, "lora.adapter", config.lora->adapter);
  if (is_here && (config.offload.optimizer == "nvme" || config.offload.parameters == "nvme"))
    check(need_disk, "offload.nvme_dir", config.offload.nvme_dir);
  check(need_file, "metrics.samples", config.metrics.samples);
  if (is_here) check(need_place_of_file, "metrics.dump_first_step", config.metrics.dump_first_step);
  mistakes.tell();
}

}  // namespace zero

#include "zero/output/output_dir.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/json_text.h"
#include "zero/config/model_paths.h"
#include "zero/output/run_mark.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr const char* traces[] = {"metrics.jsonl", "config.toml", "checkpoints", "model", "adapter"};
constexpr const char* results[] = {"model", "adapter"};

std::string place(const std::string& path, const char* trace) { return (fs::path(path) / trace).string(); }

// An empty folder is as good as none: a run that found no room for its result leaves one.
bool holds(const std::string& path, const char* trace) {
  std::error_code none;
  const fs::file_status kind = fs::symlink_status(place(path, trace), none);
  return fs::exists(kind) && !(fs::is_directory(kind) && fs::is_empty(place(path, trace), none));
}

std::string beginning(const std::string& path) { return "job.output_dir = \"" + path + "\" "; }

// A folder with a model tells for itself whose it is; the directory's own mark tells of the rest.
bool is_a_runs(const std::string& path, const std::string& trace) {
  std::error_code none;
  const auto kind = fs::symlink_status(place(path, trace.c_str()), none);
  if (trace == "model" || trace == "adapter")
    return fs::is_directory(kind) && is_marked(place(path, trace.c_str()), Mark::result);
  return is_marked(path, Mark::run) && (trace == "checkpoints" ? fs::is_directory(kind) : fs::is_regular_file(kind));
}

void require_no_link(const std::string& path, const char* trace) {
  std::error_code none;
  const fs::path link = place(path, trace);
  if (!fs::is_symlink(fs::symlink_status(link, none))) return;
  throw InputError(beginning(path) + "holds " + trace + ", which is a link to " +
                   fs::read_symlink(link, none).string() +
                   ", and what a link leads to is not removed or replaced: remove the link, or name another directory");
}

void require_no_model(const std::string& path) {
  for (const char* file : {"config.json", "adapter_config.json"})
    if (holds(path, file))
      throw InputError(beginning(path) + "holds " + file +
                       ", so it is the folder of a model and not of a run: name another directory");
}

// Whether --resume would go on with what lies there.
bool can_go_on(const std::string& path) {
  return holds(path, "config.toml") && !newest_checkpoint_of(path).empty() &&
         std::all_of(std::begin(results), std::end(results),
                     [&](const char* result) { return !holds(path, result) || is_a_runs(path, result); });
}

void require_a_runs(const std::string& path, const char* trace) {
  if (!holds(path, trace) || is_a_runs(path, trace)) return;
  require_no_link(path, trace);
  throw InputError(
      beginning(path) + "holds " + trace +
      ", which has no mark of a run of this program (somebody else's, or an earlier version's) and is not removed, by --overwrite "
      "neither: move it away, or name another directory" +
      (can_go_on(path) ? ", or pass --resume to go on with a run of yours" : ""));
}

void require_unread(const std::string& path, const char* trace, const std::vector<ReadPath>& reads) {
  if (const auto read = first_read_of(reads, place(path, trace)))
    throw InputError(beginning(path) + "holds " + trace + ", which would be replaced, and the run reads " + read->path +
                     " (" + read->name + ") there: name another directory, or move what is read");
}

void clear(const std::string& path) {
  clear_result_folder(place(path, "model"));
  clear_result_folder(place(path, "adapter"));
  clear_checkpoints(place(path, "checkpoints"));
  for (const char* file : {"metrics.jsonl", "config.toml"}) {
    std::error_code error;
    fs::remove(place(path, file), error);
    if (error) throw Error(place(path, file) + " of the former run cannot be removed: " + error.message());
  }
}

}  // namespace

void check_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads) {
  std::error_code none;
  if (fs::exists(path, none) && !fs::is_directory(path, none))
    throw InputError(beginning(path) + "is not a directory: name another one");
  require_no_model(path);
  if (former == FormerRun::overwritten) {
    for (const char* trace : traces) {
      require_a_runs(path, trace);
      require_unread(path, trace, reads);
    }
  } else if (former == FormerRun::resumed) {
    if (!holds(path, "config.toml"))
      throw InputError(beginning(path) + "holds no run to resume: leave --resume out to begin one");
    for (const char* result : results) {
      require_a_runs(path, result);
      require_unread(path, result, reads);
    }
  } else {
    for (const char* trace : traces) {
      require_a_runs(path, trace);
      if (holds(path, trace))
        throw InputError(beginning(path) + "holds a run already (" + trace +
                         (can_go_on(path)
                              ? "): name another directory, or pass --resume to go on with it, or --overwrite"
                              : ") and no checkpoint to go on from: name another directory, or pass --overwrite"));
    }
  }
}

std::string checkpoints_root(const Config& config) { return config.job.output_dir + "/checkpoints"; }

bool holds_result(const std::string& path) { return holds(path, "model") || holds(path, "adapter"); }

void prepare_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads,
                        const std::string& resolved_config) {
  check_output_dir(path, former, reads);
  mark_folder(path, Mark::run);
  for (const std::string& folder : {path, place(path, "token_cache"), place(path, "model"), place(path, "adapter")})
    if (folder == path || folder.ends_with("token_cache") || is_marked(folder, Mark::result)) clear_unpublished(folder);
  if (former == FormerRun::overwritten) clear(path);
  write_text_file(place(path, "config.toml"), resolved_config);
}

}  // namespace zero

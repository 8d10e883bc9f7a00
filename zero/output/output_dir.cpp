#include "zero/output/output_dir.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/new_file.h"
#include "base/files/past_refusal.h"
#include "base/log.h"
#include "zero/config/model_paths.h"
#include "zero/output/record_names.h"
#include "zero/output/run_mark.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr const char* traces[] = {"metrics.jsonl", "samples.jsonl", reference_file, "config.toml",
                                  "checkpoints",   "model",         "adapter",      "best"};
constexpr const char* results[] = {"model", "adapter", "best"};

std::string place(const std::string& path, const char* trace) { return (fs::path(path) / trace).string(); }

FileFacts::Kind kind_of(const std::string& path, const char* trace, FileCalls& calls) {
  return facts_of(place(path, trace), calls, Links::kept).kind;
}

// An empty folder counts as absent. A run that lacks disk space for its result leaves an empty folder, or the start of
// a file that cannot be removed.
bool holds(const std::string& path, const char* trace, FileCalls& calls) {
  const FileFacts::Kind kind = kind_of(path, trace, calls);
  if (kind == FileFacts::Kind::directory) return !is_empty_but_for_unpublished(place(path, trace), calls);
  return kind != FileFacts::Kind::absent;
}

std::string beginning(const std::string& path) { return "job.output_dir = \"" + path + "\" "; }

// A folder with a model has a mark of its own. The directory's mark covers the rest.
bool is_a_runs(const std::string& path, const std::string& trace, FileCalls& calls) {
  const FileFacts::Kind kind = kind_of(path, trace.c_str(), calls);
  if (std::find(std::begin(results), std::end(results), trace) != std::end(results))
    return kind == FileFacts::Kind::directory && is_marked(place(path, trace.c_str()), Mark::result, calls);
  return is_marked(path, Mark::run, calls) &&
         kind == (trace == "checkpoints" ? FileFacts::Kind::directory : FileFacts::Kind::file);
}

void require_no_link(const std::string& path, const char* trace, FileCalls& calls) {
  if (kind_of(path, trace, calls) != FileFacts::Kind::link) return;
  std::error_code none;
  throw InputError(beginning(path) + "holds " + trace + ", which is a link to " +
                   fs::read_symlink(place(path, trace), none).string() +
                   ", and what a link leads to is not removed or replaced: remove the link, or name another directory");
}

void require_no_model(const std::string& path, FileCalls& calls) {
  for (const char* file : {"config.json", "adapter_config.json"})
    if (holds(path, file, calls))
      throw InputError(beginning(path) + "holds " + file +
                       ", so it is the folder of a model and not of a run: name another directory");
}

/// A folder best/ without a mark is a user's own, and a run leaves it alone.
bool is_users_best(const std::string& path, const std::string& trace, FileCalls& calls) {
  return trace == "best" && !is_a_runs(path, trace, calls);
}

/// True for a run that was stopped before its first step, while its reference was computed.
bool holds_reference_alone(const std::string& path, FileCalls& calls) {
  return is_marked(path, Mark::run, calls) && holds(path, reference_file, calls) && !has_saved(path, calls) &&
         facts_of(place(path, "metrics.jsonl"), calls).bytes == 0;
}

// Returns true if --resume would continue from this folder.
bool can_go_on(const std::string& path, FileCalls& calls) {
  return holds(path, "config.toml", calls) &&
         (!newest_checkpoint_of(path, calls).empty() || holds_reference_alone(path, calls)) &&
         std::all_of(std::begin(results), std::end(results), [&](const char* result) {
           return !holds(path, result, calls) || is_a_runs(path, result, calls) || is_users_best(path, result, calls);
         });
}

void require_a_runs(const std::string& path, const char* trace, FileCalls& calls) {
  if (!holds(path, trace, calls) || is_a_runs(path, trace, calls) || is_users_best(path, trace, calls)) return;
  require_no_link(path, trace, calls);
  throw InputError(
      beginning(path) + "holds " + trace +
      ", which has no mark of a run of this program (somebody else's, or an earlier version's) and is not removed, by --overwrite "
      "neither: move it away, or name another directory" +
      (can_go_on(path, calls) ? ", or pass --resume to go on with a run of yours" : ""));
}

void require_unread(const std::string& path, const char* trace, const std::vector<ReadPath>& reads) {
  if (const auto read = first_read_of(reads, place(path, trace)))
    throw InputError(beginning(path) + "holds " + trace + ", which would be replaced, and the run reads " + read->path +
                     " (" + read->name + ") there: name another directory, or move what is read");
}

// Leaves what a link leads to.
template <class IsOwn>
void clear_folder(const std::string& folder, const IsOwn& is_own, FileCalls& calls) {
  if (facts_of(folder, calls, Links::kept).kind != FileFacts::Kind::directory) return;
  for (const std::string& name : names_in(folder, calls))
    if (is_own(name)) remove_file(folder + "/" + name, calls);
  if (names_in(folder, calls).empty()) remove_file(folder, calls);
}

void clear(const std::string& path, FileCalls& calls) {
  for (const char* result : results)
    if (!is_users_best(path, result, calls)) clear_result_folder(place(path, result), calls);
  clear_checkpoints(place(path, "checkpoints"), calls);
  clear_folder(place(path, "tb"), event_file_time, calls);
  clear_folder(place(path, "trackio"), is_database_file, calls);
  clear_folder(place(path, "trace"), is_trace_file, calls);
  for (const char* file : {"metrics.jsonl", "samples.jsonl", reference_file, "config.toml"})
    remove_file(place(path, file), calls);
}

/// Warns of a folder that looks like somebody else's. A log, a job's script or a configuration may lie there.
void tell_strangers(const std::string& path, FileCalls& calls) {
  std::vector<std::string> names = names_in(path, calls);
  std::erase_if(names, [&](const std::string& name) {
    return name.starts_with('.') || name == "token_cache" || name == "tb" || name == "trackio" || name == "trace" ||
           std::find(std::begin(traces), std::end(traces), name) != std::end(traces);
  });
  if (names.size() > 3)
    log_warning(beginning(path), "holds ", names.size(), " files and folders that no run made, such as ", names.front(),
                ": they stay, and the run's files go beside them");
}

void begin_run(const std::string& path, FormerRun former, const std::string& resolved_config, const std::string& id,
               FileCalls& calls) {
  mark_folder(path, Mark::run, calls);
  for (const std::string& folder :
       {path, place(path, "token_cache"), place(path, "model"), place(path, "adapter"), place(path, "best")})
    if (folder == path || folder.ends_with("token_cache") || is_marked(folder, Mark::result, calls) ||
        is_empty_but_for_unpublished(folder, calls))
      clear_unpublished(folder, calls);
  if (kind_of(path, "trace", calls) == FileFacts::Kind::directory) clear_unpublished(place(path, "trace"), calls);
  if (former == FormerRun::overwritten) clear(path, calls);
  if (former != FormerRun::resumed) mark_run(path, id, calls);  // before config.toml, which shows that there is a run
  NewFile config(place(path, "config.toml"), calls);
  config.append(resolved_config.data(), std::int64_t(resolved_config.size()));
  config.publish();
}

}  // namespace

void check_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads, FileCalls& calls) {
  const FileFacts::Kind kind = facts_of(path, calls).kind;
  if (kind != FileFacts::Kind::absent && kind != FileFacts::Kind::directory)
    throw InputError(beginning(path) + "is not a directory: name another one");
  require_no_model(path, calls);
  if (former == FormerRun::overwritten) {
    for (const char* trace : traces) {
      require_a_runs(path, trace, calls);
      require_unread(path, trace, reads);
    }
  } else if (former == FormerRun::resumed) {
    if (!holds(path, "config.toml", calls))
      throw InputError(beginning(path) + "holds no run to resume: leave --resume out to begin one");
    if (!is_marked(path, Mark::run, calls) && newest_checkpoint_of(path, calls).empty())
      throw InputError(
          beginning(path) +
          "holds config.toml, but no checkpoint and no mark of a run of this program (.zero_run): there is "
          "nothing to resume, and the file would be replaced; name another directory");
    for (const char* result : results) {
      require_a_runs(path, result, calls);
      require_unread(path, result, reads);
    }
  } else {
    for (const char* trace : traces) {
      require_a_runs(path, trace, calls);
      if (holds(path, trace, calls) && !is_users_best(path, trace, calls))
        throw InputError(beginning(path) + "holds a run already (" + trace +
                         (can_go_on(path, calls)
                              ? "): name another directory, or pass --resume to go on with it, or --overwrite"
                              : ") and no checkpoint to go on from: name another directory, or pass --overwrite"));
    }
  }
}

std::string checkpoints_root(const Config& config) { return config.job.output_dir + "/checkpoints"; }

bool holds_result(const std::string& path, FileCalls& calls) {
  return holds(path, "model", calls) || holds(path, "adapter", calls);
}

void prepare_output_dir(const std::string& path, FormerRun former, const std::vector<ReadPath>& reads,
                        const std::string& resolved_config, const std::string& id, FileCalls& calls) {
  check_output_dir(path, former, reads, calls);
  if (!is_marked(path, Mark::run, calls)) tell_strangers(path, calls);
  past_refusal([&] { begin_run(path, former, resolved_config, id, calls); });
}

}  // namespace zero

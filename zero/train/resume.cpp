#include "zero/train/resume.h"

#include "base/counted.h"
#include "base/error.h"
#include "base/files/past_refusal.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/damaged_checkpoint.h"
#include "zero/output/output_dir.h"
#include "zero/output/run_mark.h"

namespace zero {
namespace {

std::optional<Manifest> newest_manifest(const CheckpointFolders& folders, FileCalls& calls) {
  for (const std::int64_t step : folders.steps()) {
    try {
      return read_manifest(calls, folders.path(step));
    } catch (const DamagedCheckpoint&) {  // resume_states() reports it
    }
  }
  return std::nullopt;
}

void tell_changes(const ResumeRequest& request, const Manifest& then) {
  std::string changes;
  try {
    changes = other_changes(request.config, parse_config(then.run.configuration, "the checkpoint's configuration"));
  } catch (const InputError&) {  // the configuration is of another version, with other keys
  }
  if (const std::string accepted =
          accepted_changes(request.config, request.now.settings, then.run.settings, request.accepted);
      !accepted.empty())
    changes = accepted + (changes.empty() ? "" : ", " + changes);
  if (const std::string place = place_changes(request.now, then.run); !place.empty())
    changes = place + (changes.empty() ? "" : ", " + changes);
  if (!changes.empty()) log_info("changed since the checkpoint: ", changes);
}

/// A run without checkpoints may start over only if nothing is lost.
void require_untrained(const std::string& output, std::int64_t recorded, FileCalls& calls) {
  const std::string place = "job.output_dir = \"" + output + "\" ";
  if (holds_result(output, calls))
    throw InputError(place +
                     "holds a finished run without checkpoints: there is nothing to resume; --overwrite begins anew");
  if (recorded == 0 && !has_saved(output, calls)) return;
  throw InputError(text(place, "holds a run that has ",
                        recorded > 0 ? "trained " + counted(recorded, "step") : std::string("written checkpoints"),
                        ", and no checkpoint to go on from: bring its checkpoints back to ", output,
                        "/checkpoints (is a volume missing?), or remove the run and begin anew with --overwrite"));
}

}  // namespace

std::optional<std::int64_t> compare_with_checkpoint(const ResumeRequest& request, const CheckpointFolders& folders,
                                                    FileCalls& calls) {
  const std::optional<Manifest> then = newest_manifest(folders, calls);
  if (!then) return std::nullopt;
  require_same_settings(request.config, request.now.settings, then->run.settings, request.accepted,
                        folders.path(then->position.steps));
  tell_changes(request, *then);
  return then->position.steps;
}

std::optional<std::int64_t> check_resume(const ResumeRequest& request, CheckpointFolders& folders, FileCalls& calls,
                                         Communicator& communicator) {
  std::int64_t step = -1;
  on_first(communicator, [&] {
    const std::string& output = request.config.job.output_dir;
    const std::int64_t recorded = last_recorded_step(output + "/metrics.jsonl", calls);  // throws if unreadable
    folders.take_back();
    if (const auto newest = compare_with_checkpoint(request, folders, calls)) {
      step = *newest;
      return;
    }
    if (!folders.names().empty())
      throw InputError(folders.root() +
                       ": no checkpoint there has a readable manifest.json: begin anew with --overwrite");
    require_untrained(output, recorded, calls);
    log_info(output, " has no checkpoint yet: the run begins at step 0");
  });
  step = broadcast_number(communicator, step, 0);
  return step < 0 ? std::nullopt : std::optional(step);
}

std::unique_ptr<MetricsWriter> open_metrics(const RunFolder& folder, const RunPosition& position,
                                            const std::shared_ptr<FileCalls>& calls) {
  const bool resumed = folder.former == FormerRun::resumed;
  const std::string path = folder.path + "/metrics.jsonl";
  const auto open = [&] {
    prepare_output_dir(folder.path, folder.former, folder.reads, folder.configuration, folder.id, *calls);
    return past_refusal([&] {
      return std::make_unique<MetricsWriter>(
          resumed ? MetricsWriter::resume(path, position.steps, position.unwritten_records, calls)
                  : MetricsWriter(path, calls));
    });
  };
  if (!resumed) return open();
  return past_refusal(open);  // resume_states() has already removed unfinished checkpoints
}

void check_owed_validation(RunPosition& position, const MetricsWriter* records, Communicator& communicator) {
  if (position.owed_validation.empty()) return;
  if (broadcast_number(communicator, records ? records->last_step() : 0, 0) >= position.steps)
    position.owed_validation.clear();
}

}  // namespace zero

#include "zero/train/resume.h"

#include "base/counted.h"
#include "base/error.h"
#include "base/files/past_refusal.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/output/output_dir.h"
#include "zero/output/run_mark.h"
#include "zero/train/settings_difference.h"

namespace zero {
namespace {

/// The settings without those that are not known here.
Settings known_of(const Settings& settings, const ResumeRequest& request) {
  Settings known = settings;
  for (const std::string& key : request.unknown)
    std::erase_if(known, [&](const auto& setting) { return setting.first == key; });
  return known;
}

/// `accepted`: the accepted changes.
void tell_changes(const ResumeRequest& request, const Manifest& then, const std::string& accepted) {
  std::string changes;
  try {
    changes = other_changes(request.config, parse_config(then.run.configuration, "the checkpoint's configuration"));
  } catch (const InputError&) {  // the configuration is of another version, with other keys
  }
  if (!accepted.empty()) changes = accepted + (changes.empty() ? "" : ", " + changes);
  if (const std::string place = place_changes(request.now, then.run); !place.empty())
    changes = place + (changes.empty() ? "" : ", " + changes);
  if (!changes.empty()) log_info("changed since the checkpoint: ", changes);
}

/// A run without checkpoints may start over only if nothing is lost.
void require_untrained(const std::string& output, std::int64_t recorded, FileCalls& calls) {
  const std::string place = "job.output_dir = \"" + output + "\" ";
  if (holds_result(output, calls))
    throw InputError(
        place + "holds a finished run without checkpoints: there is nothing to resume. Bring its checkpoints back to " +
        output +
        "/checkpoints (is a volume missing?), train its model further in another run, or begin "
        "anew with --overwrite");
  if (recorded == 0 && !has_saved(output, calls)) return;
  throw InputError(text(place, "holds a run that has ",
                        recorded > 0 ? "trained " + counted(recorded, "step") : std::string("written checkpoints"),
                        ", and no checkpoint to go on from: bring its checkpoints back to ", output,
                        "/checkpoints (is a volume missing?), or remove the run and begin anew with --overwrite"));
}

}  // namespace

Resumption find_resumption(const ResumeRequest& request, const NewestCheckpoint& newest, const std::string& root,
                           FileCalls& calls) {
  const std::string& output = request.config.job.output_dir;
  const std::int64_t recorded = last_recorded_step(output + "/metrics.jsonl", calls);  // throws if unreadable
  Resumption found;
  if (newest.whole) {
    const Manifest& manifest = newest.whole->manifest;
    const Settings now = known_of(request.now.settings, request), then = known_of(manifest.run.settings, request);
    require_same_settings(request.config, now, then, request.accepted, newest.whole->folder);
    const std::string accepted = accepted_changes(request.config, now, then, request.accepted);
    tell_changes(request, manifest, accepted);
    found.differs = !accepted.empty();
    found.step = newest.step();
  } else if (!newest.damages.empty()) {
    throw InputError(text(root, ": no checkpoint there verifies (", newest.damages.front().what,
                          "): restore it from a copy, see that this node is shown all of its files, or begin anew with "
                          "--overwrite"));
  } else {
    require_untrained(output, recorded, calls);
  }
  return found;
}

std::optional<std::int64_t> check_resume(const ResumeRequest& request, CheckpointFolders& folders, FileCalls& calls,
                                         Communicator& communicator) {
  std::int64_t step = -1;
  on_first(communicator, [&] {
    folders.take_back();
    step = find_resumption(request, newest_checkpoint(folders, calls), folders.root(), calls).step.value_or(-1);
    if (step < 0) log_info(request.config.job.output_dir, " has no checkpoint yet: the run begins at step 0");
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

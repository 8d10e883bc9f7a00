#include "zero/train/resume.h"

#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/output/output_dir.h"

namespace zero {
namespace {

std::optional<Manifest> newest_manifest(const CheckpointFolders& folders, FileCalls& calls) {
  for (const std::int64_t step : folders.steps()) {
    try {
      return read_manifest(calls, folders.path(step));
    } catch (const Error&) {  // told of when its states are wanted
    }
  }
  return std::nullopt;
}

void tell_changes(const ResumeRequest& request, const Manifest& then) {
  std::string changes;
  try {
    changes = other_changes(request.config, parse_config(then.run.configuration, "the checkpoint's configuration"));
  } catch (const InputError&) {  // of another version, whose keys differ
  }
  if (const std::string accepted =
          accepted_changes(request.config, request.now.settings, then.run.settings, request.accepted);
      !accepted.empty())
    changes = accepted + (changes.empty() ? "" : ", " + changes);
  if (const std::string place = place_changes(request.now, then.run); !place.empty())
    changes = place + (changes.empty() ? "" : ", " + changes);
  if (!changes.empty()) log_info("changed since the checkpoint: ", changes);
}

}  // namespace

std::optional<std::int64_t> check_resume(const ResumeRequest& request, const CheckpointFolders& folders,
                                         FileCalls& calls, Communicator& communicator) {
  std::int64_t step = -1;
  on_first(communicator, [&] {
    const std::string& output = request.config.job.output_dir;
    const std::optional<Manifest> then = newest_manifest(folders, calls);
    if (then) {
      step = then->position.steps;
      require_same_settings(request.config, request.now.settings, then->run.settings, request.accepted,
                            folders.path(then->position.steps));
      return tell_changes(request, *then);
    }
    if (!folders.names().empty())
      throw InputError(folders.root() +
                       ": no checkpoint there has a readable manifest.json: begin anew with --overwrite");
    if (holds_result(output))
      throw InputError(
          "job.output_dir = \"" + output +
          "\" holds a finished run without checkpoints: there is nothing to resume; --overwrite begins anew");
    log_info(output, " has no checkpoint yet: the run begins at step 0");
  });
  step = broadcast_number(communicator, step, 0);
  return step < 0 ? std::nullopt : std::optional(step);
}

void check_owed_validation(RunPosition& position, const MetricsWriter* records, Communicator& communicator) {
  if (position.owed_validation.empty()) return;
  if (broadcast_number(communicator, records ? records->last_step() : 0, 0) >= position.steps)
    position.owed_validation.clear();
}

}  // namespace zero

#include "zero/train/resume.h"

#include <chrono>
#include <iomanip>
#include <limits>

#include "base/log.h"
#include "comm/agreement.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/saved_states.h"
#include "zero/output/output_dir.h"

namespace zero {
namespace {

/// The newest complete one before a step; -1: there is none.
std::int64_t newest_before(const CheckpointFolders& folders, std::int64_t limit) {
  for (const std::int64_t step : folders.steps())
    if (step < limit) return step;
  return -1;
}

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
  if (then.run.ranks != request.now.ranks)
    changes = text("ranks ", then.run.ranks, " -> ", request.now.ranks, changes.empty() ? "" : ", ", changes);
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

RunPosition resume_states(Engine& engine, CheckpointFolders& folders, FileCalls& calls, Communicator& control) {
  Communicator& communicator = engine.host();
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t step = std::numeric_limits<std::int64_t>::max();
  for (;;) {
    // File systems may show the ranks of other nodes another folder.
    step = broadcast_number(communicator, communicator.rank() == 0 ? newest_before(folders, step) : -1, 0);
    if (step < 0) throw InputError(folders.root() + ": no checkpoint there verifies: begin anew with --overwrite");
    RunPosition position;
    std::string other;  // what another optimizer wrote is not damaged, and none before it is better
    try {
      all_or_none(control, [&] {
        SavedStates saved(calls, folders.path(step));
        check_same_tensors(saved, engine);
        try {
          check_same_states(saved, engine);
        } catch (const InputError& error) {
          other = error.what();
          return;
        }
        restore_states(saved, engine);
        position = saved.manifest().position;
      });
    } catch (const AgreedError& error) {
      if (communicator.rank() == 0)
        log_error("the checkpoint of step ", step, " does not verify: ", error.what(), ". The one before is taken");
      continue;
    }
    if (!other.empty()) throw InputError(other);
    engine.resume(position.updates);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    log_info("resumed after step ", step, ", states read in ", std::fixed, std::setprecision(2), seconds.count(), " s");
    on_first(control, [&] {
      folders.set_aside_after(step);
      if (const int removed = folders.sweep())
        log_info("removed ", removed, " unfinished checkpoint(s) from ", folders.root());
    });
    return position;
  }
}

}  // namespace zero

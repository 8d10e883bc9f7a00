#include "zero/train/observers/stops_on_request.h"

#include "base/error.h"
#include "base/log.h"

namespace zero {

void StopsOnRequest::ask(StepRequests& mine, Pause pause) {
  RunClock& clock = parts_.clock;
  RunClock::Next next = RunClock::Next::step;
  switch (pause) {
    case Pause::step:
      clock.stepped();
      break;
    case Pause::step_before_validation:
      clock.stepped();
      next = RunClock::Next::validation;
      break;
    case Pause::part_of_validation:
      clock.validated_part();
      next = RunClock::Next::part_of_validation;
      break;
    case Pause::validation:
      clock.validated();
      break;
  }
  mine.stop = parts_.stop && parts_.stop->requested();
  mine.save = clock.save_is_due();
  mine.end = clock.end_is_due(next);
}

Then StopsOnRequest::at_boundary() {
  if (!parts_.loop.stops()) return Then::go_on;
  end_early();
  return Then::stop;
}

void StopsOnRequest::end_early() {
  StepLoop& loop = parts_.loop;
  Checkpoints& checkpoints = parts_.saving.checkpoints();
  parts_.saving.records().end_line();
  const auto begin = std::chrono::steady_clock::now();
  const std::string where =
      text("stopped ", loop.asked().stop ? "on request" : "ahead of job.time_limit", " after step ", loop.steps_done(),
           " of ", loop.steps(), loop.held() ? ", whose validation is left" : "");
  if (const auto states = parts_.states.broken(loop.taken().updates)) {
    const std::string why = "the states are not finite " + states->describe() + ", and no checkpoint is made of them";
    parts_.saving.finish();
    const std::int64_t newest = parts_.saving.newest();
    if (newest < 0) throw Error(text(where, ": ", why, ". There is none before it: begin anew"));
    if (parts_.speaks) log_warning(why);
    log_info(where, ": --resume goes on from step ", newest);
    return;
  }
  if (!parts_.saving.save_to_the_end(begin))
    throw Error(text(where, ", but ", checkpoints.folders().root(), " could not take its checkpoint. ",
                     checkpoints.remedy(checkpoints.save_anywhere(loop.position()))));
  log_info(where, ": go on with --resume");
}

// If the run is resumed once more, it must find the end, not an earlier stop.
void StopsOnRequest::run_ends() {
  if (resumed_ && !parts_.config.checkpoint.is_regular()) parts_.saving.checkpoints().save(parts_.loop.position());
}

}  // namespace zero

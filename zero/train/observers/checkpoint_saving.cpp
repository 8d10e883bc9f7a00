#include "zero/train/observers/checkpoint_saving.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"

namespace zero {

void CheckpointSaving::before_step(Step& step) {
  if (saves_after(step.index + 1)) step.read_at_once = true;
}

void CheckpointSaving::ask(StepRequests& mine, Pause) {
  mine.progress = parts_.checkpoints.progress();
  mine.save_time = parts_.checkpoints.time();
}

bool CheckpointSaving::saves() const {
  const std::int64_t steps = parts_.loop.steps_done();
  return !parts_.checkpoints.has(steps) && (parts_.loop.asked().save || saves_after(steps));
}

Then CheckpointSaving::at_boundary() {
  StepLoop& loop = parts_.loop;
  tend();
  if (!loop.failed() && (loop.stops() || saves())) loop.read_all();
  if (!loop.failed() && !loop.stops() && saves()) save_where_it_stands();
  return Then::go_on;
}

void CheckpointSaving::save_if_asked() {
  if (!parts_.loop.stops() && parts_.loop.asked().save && saves()) save_where_it_stands();
}

void CheckpointSaving::save_where_it_stands() {
  parts_.records.end_line();
  const auto begin = std::chrono::steady_clock::now();
  if (worth_saving())
    save(parts_.loop.steps_done() < parts_.loop.steps() ? Waits::for_the_copy : Waits::to_the_end, begin);
}

// States that are not better than the saved ones would replace them.
bool CheckpointSaving::worth_saving() {
  StepLoop& loop = parts_.loop;
  std::string why;
  if (parts_.rule.choice() == OnNonfinite::stop && !std::isfinite(loop.last().loss)) {
    why = text("the loss is ", loop.last().loss);
  } else if (loop.last().passed && loop.steps_done() < loop.steps()) {
    owes_save_ = true;
    return false;
  } else if (const auto states = parts_.states.broken(loop.taken().updates)) {
    why = "the states are not finite " + states->describe();
    if (parts_.rule.choice() == OnNonfinite::rollback)
      loop.fail(loop.steps_done() - 1, false, text("step ", loop.steps_done(), ": ", why));
  } else {
    return true;
  }
  if (loop.failed()) return false;
  if (parts_.host.rank() == 0) log_warning("no checkpoint of step ", loop.steps_done(), ": ", why);
  loop.asked().save = owes_save_ = false;
  parts_.clock.saved({});  // the next checkpoint comes at its regular time
  return false;
}

bool CheckpointSaving::save_to_the_end(std::chrono::steady_clock::time_point begin) {
  return save(Waits::to_the_end, begin);
}

bool CheckpointSaving::save(Waits waits, std::chrono::steady_clock::time_point begin) {
  finish();
  Checkpoints& checkpoints = parts_.checkpoints;
  if (checkpoints.has(parts_.loop.steps_done())) return true;  // saved before its validation
  if (parts_.records.metrics) parts_.records.metrics->sync();
  bool saved = false;
  if (waits == Waits::to_the_end)
    saved = checkpoints.save(parts_.loop.position());
  else
    checkpoints.begin(parts_.loop.position());
  StepRequests& asked = parts_.loop.asked();
  asked.progress = SaveProgress::under_way;  // the progress of this checkpoint is not known yet
  asked.save_time = {};
  asked.save = owes_save_ = false;
  parts_.rule.saved(checkpoints.saved_steps());
  parts_.clock.saved(std::chrono::steady_clock::now() - begin);
  tell_clock();
  return saved;
}

void CheckpointSaving::tend() {
  StepRequests& asked = parts_.loop.asked();
  const SaveProgress told = std::exchange(asked.progress, SaveProgress::under_way);
  if (!parts_.checkpoints.under_way()) return;
  if (told != SaveProgress::under_way) parts_.checkpoints.go_on(told == SaveProgress::failed);
  parts_.rule.saved(parts_.checkpoints.saved_steps());
  tell_clock(asked.save_time);
}

void CheckpointSaving::finish() {
  if (!parts_.checkpoints.under_way()) return;
  const auto begin = std::chrono::steady_clock::now();
  parts_.checkpoints.finish();
  parts_.rule.saved(parts_.checkpoints.saved_steps());
  tell_clock(parts_.loop.asked().save_time + (std::chrono::steady_clock::now() - begin));
}

void CheckpointSaving::tell_clock(std::chrono::duration<double> took) {
  parts_.clock.saves_behind(parts_.checkpoints.under_way(), took);
  if (!parts_.checkpoints.under_way() && !parts_.checkpoints.failed()) parts_.clock.written();
}

void CheckpointSaving::went_back(const RunPosition& position) {
  parts_.checkpoints.resumed(position.steps);
  owes_save_ = false;
  parts_.clock.saved({});  // the run is at a checkpoint
}

std::int64_t CheckpointSaving::newest() {
  std::int64_t newest = -1;
  // File systems may show other nodes another folder.
  on_first(parts_.host, [&] {
    for (const std::int64_t step : parts_.checkpoints.folders().steps()) newest = std::max(newest, step);
  });
  return broadcast_number(parts_.host, newest, 0);
}

// If the run writes regular checkpoints, the older ones are worth more than the states of a failed run.
std::string CheckpointSaving::rescue(RunPosition position) {
  finish();
  if (parts_.config.checkpoint.is_regular() || position.steps == 0 || position.updates == 0) return "";
  if (parts_.states.broken(parts_.loop.taken().updates))
    return ". The trained states are not kept: they are not finite";
  if (parts_.records.metrics) parts_.records.metrics->sync();
  if (parts_.records.metrics) position.unwritten_records = parts_.records.metrics->waiting();
  return ". " + parts_.checkpoints.remedy(parts_.checkpoints.save_anywhere(position)) +
         ". Steps before this one may have harmed them already: where they fail again, begin anew";
}

}  // namespace zero

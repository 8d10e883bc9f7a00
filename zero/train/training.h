#pragma once
// Training: the loop over a run's steps with all that observes it. training.cpp lists the observers.
#include <functional>
#include <memory>
#include <vector>

#include "base/memory_tracker.h"
#include "zero/train/observers/checkpoint_saving.h"
#include "zero/train/run_data.h"
#include "zero/train/step_loop.h"
#include "zero/train/stop_signal.h"

namespace zero {

/// The parts of a run that an observer of a program's own may use: the states, where the run stands, and its checkpoints.
struct ObservedRun {
  Engine& engine;
  StepLoop& loop;
  CheckpointSaving& saving;
};

/// Makes an observer of a program's own, on every rank. May throw on one rank alone; makes no collective.
using MakeObserver = std::function<std::unique_ptr<StepObserver>(const ObservedRun& run)>;

/// The parts that a training works with beside the engine; all of them outlive the training.
struct TrainingParts {
  TrainingData& data;
  RunRecords& records;
  MemoryTracker& tracker;
  Checkpoints& checkpoints;
  RunClock& clock;                   // rank 0's counts
  const StopSignal* stop = nullptr;  // null: no signal asks to stop
  /// Brings the states of the newest checkpoint that verifies into the engine; throws on all ranks where there is none.
  /// Collective.
  std::function<RunPosition()> restore;
  std::vector<MakeObserver> observers = {};  // before all others at a boundary
};

class Training {
 public:
  /// `steps` is the length of the run. Not collective.
  Training(const Config& config, std::int64_t steps, Engine& engine, const TrainingParts& parts);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Continues a run whose states the engine has. Before run().
  void resume(const RunPosition& position) { loop_.resume(position); }

  /// Trains until the last step, or until a signal has reached any rank or the clock ends the run. All ranks then stop
  /// after the same step, or within its validation, with a checkpoint; a run that goes on from there validates first.
  /// Throws Error where a step that is not finite ends the run, and where no usable weights come of it. On a GPU errors,
  /// the loss scale and requests to stop come a step later. Collective.
  RunEnd run() { return loop_.run(); }

  /// Where the run stands: after the last step whose result was read.
  RunPosition position() const { return loop_.position(); }

 private:
  TrainingBatches batches_;
  StepLoop loop_;
  NonfiniteRule rule_;
  SoundStates states_;
  std::vector<std::unique_ptr<StepObserver>> observers_;
};

}  // namespace zero

#pragma once
// Training: the loop over a run's steps with all its observers. training.cpp lists them.
#include <functional>
#include <memory>
#include <vector>

#include "base/memory_tracker.h"
#include "zero/config/run_model.h"
#include "zero/train/observers/checkpoint_saving.h"
#include "zero/train/run_data.h"
#include "zero/train/sample_prompts.h"
#include "zero/train/step_loop.h"
#include "zero/train/stop_signal.h"

namespace zero {

/// The parts of a run that a program's own observers may use: states, position and checkpoints.
struct ObservedRun {
  Engine& engine;
  StepLoop& loop;
  CheckpointSaving& saving;
};

/// Makes a program's own observer, on every rank. May throw on just one rank. Not collective.
using MakeObserver = std::function<std::unique_ptr<StepObserver>(const ObservedRun& run)>;

/// The parts of a training other than the engine. All of these must outlive the training.
struct TrainingParts {
  TrainingData& data;
  RunRecords& records;
  MemoryTracker& tracker;
  Checkpoints& checkpoints;
  RunClock& clock;                   // rank 0's clock decides
  const StopSignal* stop = nullptr;  // null: signals are not handled
  /// Loads the states of the newest checkpoint that passes verification into the engine. Throws on all ranks if there
  /// is none. Collective.
  std::function<RunPosition()> restore;
  const SamplePrompts* samples = nullptr;    // null: none
  const RunModel* run = nullptr;             // null: best/ is not written
  std::vector<MakeObserver> observers = {};  // called before all others at a boundary
};

class Training {
 public:
  /// `steps` is the length of the run. Throws Error on the rank with records if one of them cannot be opened. Not
  /// collective.
  Training(const Config& config, std::int64_t steps, Engine& engine, const TrainingParts& parts);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Continues a run whose states are in the engine. Call it before run().
  void resume(const RunPosition& position) { loop_.resume(position); }

  /// Trains until the last step, or until a signal has reached any rank or the clock ends the run. All ranks then stop
  /// after the same step, or within its validation, with a checkpoint. A run that continues from such a checkpoint
  /// validates first. Throws Error if a step that is not finite ends the run, or if the weights are unusable at the
  /// end. On a GPU, errors, the loss scale and requests to stop take effect one step later. Collective.
  RunEnd run() { return loop_.run(); }

  /// The position after the last step whose result was read.
  RunPosition position() const { return loop_.position(); }

 private:
  TrainingBatches batches_;
  StepLoop loop_;
  NonfiniteRule rule_;
  SoundStates states_;
  std::vector<std::unique_ptr<StepObserver>> observers_;
};

}  // namespace zero

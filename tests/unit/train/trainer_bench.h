#pragma once
// Complete training runs on simulated ranks (zero/train/training.h). Gradients of chosen data rows can be made faulty,
// and checkpoints are on a disk in memory.
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/sim/memory_disk.h"
#include "zero/checkpoint/manifest.h"
#include "zero/train/run_clock.h"

namespace zero::testing {

/// A change of a parameter's gradient in the micro-batch that holds a given row; local_batch_size is 1.
struct Plant {
  std::int64_t row = 0;
  int unit = 0;
  int parameter = 0;  // index among the unit's trained parameters
  std::function<at::Tensor(const at::Tensor& gradient)> change;
};

struct BenchRun {
  std::vector<std::string> settings;  // "section.key=value", in addition to a small model's settings
  std::string groups = {};            // [[optimizer.group]] tables
  int ranks = 1;
  std::int64_t steps = 8;
  std::vector<Plant> plants = {};
  std::set<std::int64_t> broken_rows = {};  // rows that alone have a token whose embedding holds an infinity
  bool resume = false;
  bool overwrite = false;  // used with has_folder
  // Called on every rank before each row that is read for a training step; may throw.
  std::function<void(std::int64_t row)> before_row = {};
  std::int64_t validation_rows = 0;                                  // 0: there are no validation data
  std::function<void(std::int64_t row)> before_validation_row = {};  // like before_row
  std::string metrics = {};                                          // path; empty: none
  CallPlan* first_ranks_disk = nullptr;                              // plan for the calls of the first rank
  CallPlan* last_ranks_disk = nullptr;                               // plan for the calls of the last rank
  // The run begins and ends in its folder /disk/run as zero_train does, with checks, mark file, configuration, records
  // and result.
  bool has_folder = false;
  // The clock of a rank, which the rank calls; empty: no clock saves or ends the run.
  std::function<RunClock::Clock::time_point(int rank)> now = {};
};

struct BenchResult {
  std::map<std::string, at::Tensor> weights;  // empty if the run failed
  std::string error;                          // the same on all ranks; empty: none
  ExitCode code = ExitCode::ok;               // of the error
  std::int64_t saved_steps = -1;              // of the last checkpoint that the run has written or continued from
  std::vector<std::int64_t> checkpoints;      // newest first
  std::optional<PassedSteps> passed;          // from the newest checkpoint's manifest
};

/// Runs the training loop, with checkpoints below /disk/run/checkpoints.
BenchResult train(const BenchRun& run, MemoryDisk& disk);

/// Trains the same run in a plain loop without the training loop's remedies, and skips `steps` (counted from 1).
std::map<std::string, at::Tensor> train_without(const std::set<std::int64_t>& steps, const BenchRun& run);

/// Returns a row of step `step` (counted from 1) in a micro-batch of `rank`.
std::int64_t row_of(const BenchRun& run, std::int64_t step, int rank, int micro_batch);

/// Returns a function that sets the last element of a gradient to `value`.
std::function<at::Tensor(const at::Tensor&)> with_last(double value);

void expect_equal(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b);

}  // namespace zero::testing

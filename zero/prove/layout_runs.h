#pragma once
// LayoutRuns: trains a configuration for a few steps in each layout, as a user would, with ranks that mpirun starts. It
// works in a temporary folder and leaves the user's own output untouched.
#include <optional>
#include <string>
#include <vector>

#include "zero/prove/layouts.h"
#include "zero/prove/run_record.h"

namespace zero {

struct ProofRun {
  std::string program;                 // zero_prove, which trains and records when it is given a path
  std::string config;                  // path
  std::vector<std::string> overrides;  // the user's
  std::int64_t steps = 4;
  std::int64_t global_batch_size = 1;
  bool has_validation = false;
  bool goes_back = false;  // after a non-finite step; without checkpoints the step is skipped
  int threads = 1;         // per rank; equal in all layouts except one
  std::string folder;
};

class LayoutRuns {
 public:
  explicit LayoutRuns(ProofRun run) : run_(std::move(run)) {}

  struct Outcome {
    int code = 0;
    RunRecord record;                         // if the code is 0
    std::string last_words;                   // if the code is not 0: the reason and the remedy
    std::optional<std::int64_t> ended_after;  // steps, if fewer than requested
    double seconds = 0;
  };
  /// `begins`: the layout that trains the first half and stops with a checkpoint; null: `layout` trains all steps.
  Outcome train(const Layout& layout, const Layout* begins);

  /// The step after which `begins` stops.
  std::int64_t half() const { return run_.steps / 2; }

 private:
  int start(const Layout& layout, const std::string& record, std::int64_t steps, const std::vector<std::string>& more);
  std::string path(const std::string& name) const { return run_.folder + "/" + name; }

  ProofRun run_;
};

}  // namespace zero

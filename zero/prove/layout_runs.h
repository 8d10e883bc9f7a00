#pragma once
// LayoutRuns: trains a configuration for a few steps in one layout after the other, as a user would, with ranks that
// mpirun starts, in a temporary folder. What the user's run wrote is not touched.
#include <optional>
#include <string>
#include <vector>

#include "zero/prove/layouts.h"
#include "zero/prove/run_record.h"

namespace zero {

struct ProofRun {
  std::string program;                 // zero_prove, which trains and records when it is told where to
  std::string config;                  // path
  std::vector<std::string> overrides;  // the user's
  std::int64_t steps = 4;
  std::int64_t global_batch_size = 1;
  bool has_validation = false;
  bool goes_back = false;  // where a step is not finite; without checkpoints it is skipped instead
  int threads = 1;         // of each rank, the same in all layouts but where one has more
  std::string folder;
};

class LayoutRuns {
 public:
  explicit LayoutRuns(ProofRun run) : run_(std::move(run)) {}

  struct Outcome {
    int code = 0;
    RunRecord record;                         // where the code is 0
    std::string last_words;                   // where it is not: why, and what mends it
    std::optional<std::int64_t> ended_after;  // steps, where they are fewer than asked for
    double seconds = 0;
  };
  /// `begins`: the layout that trains the first half and is stopped with a checkpoint; null: `layout` trains all of it.
  Outcome train(const Layout& layout, const Layout* begins);

  /// After which a layout is stopped that another one goes on from.
  std::int64_t half() const { return run_.steps / 2; }

 private:
  int start(const Layout& layout, const std::string& record, std::int64_t steps, const std::vector<std::string>& more);
  std::string path(const std::string& name) const { return run_.folder + "/" + name; }

  ProofRun run_;
};

}  // namespace zero

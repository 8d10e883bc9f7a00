#pragma once
// LegalLayout: determines whether a configuration can run on a number of ranks, why not, and the nearest layouts that
// can. It applies the configuration's checks and then builds one rank's engine on Meta. It finds every error that does
// not depend on weights or a device.
#include <functional>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "zero/config/config.h"

namespace zero {

/// The job that is to run a layout.
struct LayoutJob {
  int ranks = 1;
  bool on_gpu = false;
  bool resumed = false;  // a checkpoint fixes the keys that may not change
  int least_ranks = 1;   // that the other options allow
  // The option that names the ranks of each of `nodes` nodes; empty: mpirun starts them.
  std::string ranks_option = {};
  int nodes = 1;
};

struct LayoutVerdict {
  std::string why;                 // error message of such a run; empty: the layout is legal
  std::vector<std::string> legal;  // changes, each of which makes it legal: "--set parallel.tensor=2", "6 ranks"

  bool is_legal() const { return why.empty(); }
  /// Returns the changes in words, "--set parallel.tensor=2, or 6 ranks"; empty if there are none.
  std::string remedies() const;
};

/// Returns the error message of such a run; empty if the layout is legal. Examines the same keys as judge_layout() and
/// looks for no other layout.
std::string why_illegal(const Config& config, const ModelConfig& model, const LayoutJob& job);

/// Examines [parallel], [zero], [offload], [lora], [optimizer], job.reproducible and the batch. Reads no weights. The
/// verdict has at most three changes of one key each; if there are none, a change of two keys. It also has the nearest
/// numbers of ranks on which the layout is legal as it is. Every change was judged by why_illegal(). A global batch
/// that the user did not give follows the layout.
LayoutVerdict judge_layout(const Config& config, const ModelConfig& model, const LayoutJob& job);

/// Calls `check`. If it throws InputError, adds the changes that `judge` finds to its message: "...; legal here: --set
/// parallel.tensor=2, or 6 ranks".
void check_layout(const std::function<void()>& check, const std::function<LayoutVerdict()>& judge);

}  // namespace zero

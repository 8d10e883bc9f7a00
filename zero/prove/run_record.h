#pragma once
// RunRecord: the results of a short run, by step and tensor. Rank 0 writes it as a file of JSON lines, and a comparison
// reads it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zero/prove/tensor_sketch.h"

namespace zero {

/// A tensor at one point of a step. Kinds: "gradient" (summed over ranks, before clipping), the optimizer's states by
/// their names in checkpoints ("master", "exp_avg", ...), and "weights" as the model uses them.
struct TensorRecord {
  std::string tensor;
  TensorSketch sketch;
  bool numbers = true;  // false: codes, whose distance is meaningless
  int other_rank = -1;  // first rank whose copy differs from those before it
};

/// Numbers of a step, equal on all ranks.
struct StepFigures {
  double loss = 0;
  double grad_norm = 0;
  double loss_scale = 1;     // after the step
  std::int64_t updates = 0;  // steps taken so far
};

struct KindRecord {
  std::string kind;
  std::vector<TensorRecord> tensors;  // in the model's order
};

/// The first step (0, or the checkpoint's step in a resumed run) has states and weights only.
struct StepRecord {
  StepFigures figures;
  bool has_figures = false;
  std::vector<KindRecord> kinds;  // in recording order

  const KindRecord* find(const std::string& kind) const;
};

struct RunRecord {
  std::map<std::int64_t, StepRecord> steps;
};

/// Returns one line, without a line end.
std::string format_kind(std::int64_t step, const KindRecord& record);
std::string format_figures(std::int64_t step, const StepFigures& figures);

/// Throws Error if the file is missing or incomplete.
RunRecord read_record(const std::string& path);

}  // namespace zero

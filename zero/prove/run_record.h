#pragma once
// RunRecord: what a run of a few steps gave, step by step and tensor by tensor, as a file of JSON lines that rank 0
// writes and a comparison reads.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zero/prove/tensor_sketch.h"

namespace zero {

/// A tensor at one point of a step. Kinds: "gradient" (summed over all ranks, before clipping), the optimizer's states
/// as checkpoints call them ("master", "exp_avg", ...), and "weights", as the model computes with them.
struct TensorRecord {
  std::string tensor;
  TensorSketch sketch;
  bool numbers = true;  // false: codes, whose distance says nothing
  int other_rank = -1;  // the first rank whose copy is another than that of the ranks before it
};

/// Figures of a step, the same on all ranks.
struct StepFigures {
  double loss = 0;
  double grad_norm = 0;
  double loss_scale = 1;     // after the step
  std::int64_t updates = 0;  // steps that were taken so far
};

struct KindRecord {
  std::string kind;
  std::vector<TensorRecord> tensors;  // in the model's order
};

/// Step 0, or the one that a resumed run goes on from, has states and weights alone.
struct StepRecord {
  StepFigures figures;
  bool has_figures = false;
  std::vector<KindRecord> kinds;  // in the order in which they came

  const KindRecord* find(const std::string& kind) const;
};

struct RunRecord {
  std::map<std::int64_t, StepRecord> steps;
};

/// One line each, without its end.
std::string format_kind(std::int64_t step, const KindRecord& record);
std::string format_figures(std::int64_t step, const StepFigures& figures);

/// Throws Error when the file is missing or torn.
RunRecord read_record(const std::string& path);

}  // namespace zero

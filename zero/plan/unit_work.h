#pragma once
// UnitWork: the computation of a model's units for one micro-batch on one rank, in seconds by kind of kernel.
#include <cstdint>
#include <vector>

#include "models/model.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"
#include "zero/plan/kernels.h"

namespace zero {

/// Seconds by kind of kernel.
struct KernelSeconds {
  double products = 0, attention = 0, other = 0;

  double sum() const { return products + attention + other; }
  KernelSeconds& operator+=(const KernelSeconds& more);
  KernelSeconds operator*(double times) const;
};

/// Collectives of the axes around a block in one micro-batch, each of one vector per token (docs/parallel.md).
struct AxisCalls {
  int gathers = 0, scatters = 0;  // of the tensor axis
  int swaps = 0;                  // of heads, on the context axis

  AxisCalls& operator+=(const AxisCalls& other);
};

struct UnitWork {
  KernelSeconds forward, backward;  // backward includes what is computed again
  double trained = 0, frozen = 0;   // elements that this rank's slice of the unit holds
  bool adapted = false;             // partly frozen: one collective carries the trained elements of all such units
  AxisCalls axes;
};

/// The properties of a layout's run that determine its work.
struct WorkSetting {
  const Config& config;
  const BatchArithmetic& batch;
  at::ScalarType compute;
  bool keeps_inputs = false;
  bool gpu = false;
};

/// One entry per unit of `model`, which holds a rank's slices. Products come from the shapes of the parameters,
/// attention and row kernels from the model's configuration.
std::vector<UnitWork> work_of_units(const Model& model, const WorkSetting& setting, Kernels& kernels);

}  // namespace zero

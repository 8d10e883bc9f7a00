#pragma once
// Optimizer: the rule by which weights follow gradients. Each rule is a file in rules/, and optimizer_table.h lists
// them.
//
// An update is one pass over all elements. A rule that needs sums over whole tensors or over the run has several
// passes:
//   for each pass: update() of every span, in order; the sums of all ranks; conclude()
// A span is on one device, the host or a GPU. A rule keeps states and statistics. States are arrays that are sharded as
// the weights are. Statistics are fp64 numbers that all ranks hold alike.
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "offload/state_store.h"
#include "zero/optim/kernels/update_span.h"
#include "zero/optim/optimizer_options.h"
#include "zero/optim/statistics.h"

namespace zero {

/// One pass of an optimizer's step. For a span, `lr` and `weight_decay` are those of its tensors; else `lr` is the
/// run's.
struct UpdateContext : StepFactors {
  int pass = 0;
  double own_lr = 0;                    // the optimizer's own rate, the same for all tensors (OptimizerSet::own_lr)
  double schedule = 1;                  // the part of their peak that rates are at
  Statistics* statistics = nullptr;     // the optimizer's
  const at::Tensor* numbers = nullptr;  // StepNumbers of a GPU, for rules that read them there
};

/// The properties of a tensor that decide which optimizer treats it.
struct TensorTraits {
  std::vector<std::int64_t> shape;
  bool in_block = true;       // false: embedding or head
  std::int64_t position = 0;  // offset of its first element in the flat vector
};

class Optimizer {
 public:
  explicit Optimizer(OptimizerOptions options) : options_(std::move(options)) {}
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const OptimizerOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }

  /// The states besides master weights, which have the type `master`.
  virtual std::vector<StateSpec> states(at::ScalarType master) const = 0;
  /// Index of the state that starts as a copy of the weights, not as zeros; -1: none.
  virtual int starts_as_weights() const { return -1; }

  /// True if the rule can treat such a tensor. AdamW, with lr_adamw, treats what Muon cannot.
  virtual bool takes(const TensorTraits&) const { return true; }
  /// True if a span ends with its tensor; else spans run on over tensors with the same rates.
  virtual bool by_tensor() const { return false; }
  /// Most elements of a span on that device. A rule whose step allocates memory of the span's size sets it.
  virtual std::int64_t longest_span(at::DeviceType device) const { return std::int64_t{1} << 40; }
  /// True if transform() changes the gradients of whole matrices between the first pass and the second.
  virtual bool transforms_matrices() const { return false; }
  /// True if update() on a GPU reads norm, clip factor and step count in device memory, so that no one waits for them.
  virtual bool reads_device_numbers() const { return false; }

  /// The statistics of a tensor of that shape, and of the run. Checkpoints leave out a statistic without a name.
  virtual std::vector<StatisticSpec> statistics(const std::vector<std::int64_t>& shape) const { return {}; }
  virtual std::vector<StatisticSpec> run_statistics() const { return {}; }
  /// Number of sums over elements, of a tensor and of the run, in the pass that has most.
  virtual std::int64_t sums(const std::vector<std::int64_t>& shape) const { return 0; }
  virtual std::int64_t run_sums() const { return 0; }
  /// Sets statistics before the first step. They are zeros until then.
  virtual void start(Statistics&) const {}

  /// Number of passes. Only the last one writes weights.
  virtual int passes() const { return 1; }
  /// True if the pass changes states, master weights included. Otherwise it only reads them.
  virtual bool writes_states(int pass) const { return true; }
  virtual void update(const UpdateSpan& span, const UpdateContext& context) const = 0;
  /// After a pass, once sums are those of all ranks: the same on all of them.
  virtual void conclude(const UpdateContext& context) const {}
  /// [rows, cols] in place.
  virtual void transform(const at::Tensor& matrix) const {}

  /// Numbers for the metrics, by name. After the last pass.
  virtual std::vector<std::pair<std::string, double>> report(const UpdateContext& context) const { return {}; }

 private:
  OptimizerOptions options_;
};

/// The factors of a step for the rule of these options.
StepFactors step_factors(const OptimizerOptions& options, std::int64_t step, double lr, double gradient_scale);

/// Returns the gradient in the master's type, times the step's gradient scale.
at::Tensor scaled_gradient(const UpdateSpan& span, const StepFactors& factors);
/// Writes the master to the weights, unless it is them.
void write_weights(const UpdateSpan& span);

/// True for two or more dimensions: such parameters decay. `shape` is the tensor's own, not that of the flat view.
inline bool decays(const std::vector<std::int64_t>& shape) { return shape.size() >= 2; }

}  // namespace zero

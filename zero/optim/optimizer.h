#pragma once
// Optimizer: the update rule, which computes new weights from gradients. Each rule is a file in rules/, and
// optimizer_table.h lists them.
//
// An update is one pass over all elements. A rule that needs sums over full tensors or over all tensors of the run has
// several passes:
//   for each pass: update() of every span, in order; sum over all ranks; conclude()
// A span is on one device, the host or a GPU. A rule keeps states and statistics. States are arrays that are sharded as
// the weights are. Statistics are fp64 numbers, equal on all ranks.
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

/// One pass of an optimizer's step. For a span, `lr` and `weight_decay` are those of its tensors. Otherwise `lr` is the
/// run's rate.
struct UpdateContext : StepFactors {
  int pass = 0;
  double own_lr = 0;                    // the optimizer's own rate, the same for all tensors (OptimizerSet::own_lr)
  double schedule = 1;                  // current fraction of the rates' peak values
  Statistics* statistics = nullptr;     // the optimizer's
  const at::Tensor* numbers = nullptr;  // StepNumbers on a GPU, for rules that read them there
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

  /// Returns the states other than master weights. `master`: the type of the master weights.
  virtual std::vector<StateSpec> states(at::ScalarType master) const = 0;
  /// Returns the index of the state that is initialised with a copy of the weights instead of zeros; -1: none.
  virtual int starts_as_weights() const { return -1; }

  /// Returns true if the rule can update such a tensor. AdamW, with lr_adamw, updates tensors that Muon cannot.
  virtual bool takes(const TensorTraits&) const { return true; }
  /// Returns true if a span must end with its tensor. Otherwise a span may cover several tensors with the same rates.
  virtual bool by_tensor() const { return false; }
  /// Returns the maximum number of elements in a span on that device. Override this in a rule whose step allocates
  /// memory of the span's size.
  virtual std::int64_t longest_span(at::DeviceType device) const { return std::int64_t{1} << 40; }
  /// Returns true if transform() changes the gradients of whole matrices between the first and the second pass.
  virtual bool transforms_matrices() const { return false; }
  /// Returns true if update() on a GPU reads norm, clip factor and step count from device memory. The host then does
  /// not wait for them.
  virtual bool reads_device_numbers() const { return false; }

  /// The statistics of a tensor of that shape, and of the run. Checkpoints omit a statistic without a name.
  virtual std::vector<StatisticSpec> statistics(const std::vector<std::int64_t>& shape) const { return {}; }
  virtual std::vector<StatisticSpec> run_statistics() const { return {}; }
  /// The number of sums over elements, for a tensor and for the run, in the pass with the most sums.
  virtual std::int64_t sums(const std::vector<std::int64_t>& shape) const { return 0; }
  virtual std::int64_t run_sums() const { return 0; }
  /// Called before the first step. Initialises statistics, which are zeros until then.
  virtual void start(Statistics&) const {}

  /// Number of passes. Only the last one writes weights.
  virtual int passes() const { return 1; }
  /// True if the pass changes states, master weights included. Otherwise it only reads them.
  virtual bool writes_states(int pass) const { return true; }
  virtual void update(const UpdateSpan& span, const UpdateContext& context) const = 0;
  /// Called after each pass, when sums cover all ranks. Must compute the same on all ranks.
  virtual void conclude(const UpdateContext& context) const {}
  /// Transforms the matrix [rows, cols] in place.
  virtual void transform(const at::Tensor& matrix) const {}

  /// Returns values for the metrics, by name. Called after the last pass.
  virtual std::vector<std::pair<std::string, double>> report(const UpdateContext& context) const { return {}; }

 private:
  OptimizerOptions options_;
};

/// Returns the factors of a step for these options.
StepFactors step_factors(const OptimizerOptions& options, std::int64_t step, double lr, double gradient_scale);

/// Returns the gradient in the master's type, times the step's gradient scale.
at::Tensor scaled_gradient(const UpdateSpan& span, const StepFactors& factors);
/// Writes the master to the weights, unless the weights are their own master.
void write_weights(const UpdateSpan& span);

/// Returns true for two or more dimensions, since weight decay applies to such parameters. `shape` is the tensor's
/// shape, not the flat view's.
inline bool decays(const std::vector<std::int64_t>& shape) { return shape.size() >= 2; }

}  // namespace zero

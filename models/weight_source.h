#pragma once
// WeightSource: the source of weights before training. A holder of a part of a tensor requests only that part.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/numbers/ggml_type.h"
#include "models/tensor_spec.h"

namespace zero {

struct Model;

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Throws InputError with tensor and shapes if one of `tensors` is missing or has another shape. Call it once, on
  /// every rank, before the first read.
  virtual void check(const std::vector<TensorSpec>& tensors) = 0;

  /// Reads elements [begin, begin + count) of the flattened tensor into `out`, a contiguous CPU tensor of `count`
  /// elements. Values are rounded to its floating type. They do not depend on the cut of a tensor.
  virtual void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) = 0;

  /// Reads whole blocks in a ggml type into `out`, contiguous CPU bytes [ggml_bytes]. A tensor that is stored in this
  /// type is copied, any other is rounded from fp32.
  virtual void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                       const at::Tensor& out);

  /// Throws InputError if two stored values that the model ties differ: a head and its embedding. It reads them: call
  /// it once, on one rank, after check().
  virtual void check_values() {}
};

/// All full tensors of the model as files name them, in the order of its units. A tied one appears once.
std::vector<TensorSpec> tensors_of(const Model& model);

/// Fills parameters that are held whole (hold_parameters), after check(). For inference and tests.
void load_parameters(Model& model, WeightSource& weights);

}  // namespace zero

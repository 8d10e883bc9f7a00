#pragma once
// WeightSource: supplies weights before training. A rank that holds part of a tensor reads only that part.
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

  /// Throws InputError with the tensor and the shapes if one of `tensors` is missing or has the wrong shape. Call it
  /// once on every rank, before the first read.
  virtual void check(const std::vector<TensorSpec>& tensors) = 0;

  /// Reads elements [begin, begin + count) of the flattened tensor into `out`, a contiguous CPU tensor of `count`
  /// elements. Values are rounded to the floating type of `out`. They do not depend on how ranks split the tensor.
  virtual void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) = 0;

  /// Reads whole blocks of a ggml type into `out`, contiguous CPU bytes [ggml_bytes]. A tensor stored in this type is
  /// copied. Any other is rounded from fp32.
  virtual void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                       const at::Tensor& out);

  /// Throws InputError if the model ties its head to the embedding but the stored values of the two differ. Since it
  /// reads both, call it once, on one rank, after check().
  virtual void check_values() {}
};

/// All full tensors of the model, with their names in files, in the order of its units. A tied tensor appears once.
std::vector<TensorSpec> tensors_of(const Model& model);

/// Fills parameters that hold_parameters() has allocated. Call check() first. For inference and tests.
void load_parameters(Model& model, WeightSource& weights);

}  // namespace zero

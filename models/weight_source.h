#pragma once
// WeightSource: where weights come from before training. Whoever holds a part of a tensor asks for just that part.
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

  /// InputError that names tensor and shapes when one of `tensors` is missing or has another shape. To be called once,
  /// on every rank, before the first read.
  virtual void check(const std::vector<TensorSpec>& tensors) = 0;

  /// Elements [begin, begin + count) of the flattened tensor into `out`, a contiguous CPU tensor of `count` elements of
  /// a floating type, to which the values are rounded. The same values however a tensor is cut.
  virtual void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) = 0;

  /// The same in a type of ggml into `out`, contiguous bytes of the CPU [ggml_bytes]; of whole blocks. What is held in
  /// this type comes as it is, anything else is rounded from fp32.
  virtual void read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                       const at::Tensor& out);

  /// InputError where values differ that are one in the model: those of a head that is stored beside the embedding that
  /// it is tied to. It reads them: to be called once, on one rank, after check().
  virtual void check_values() {}
};

/// All tensors of the model as the outside world knows them, in the order of its units; a tied one once.
std::vector<TensorSpec> tensors_of(const Model& model);

/// Fills parameters that are held whole (hold_parameters), after check(). For inference and tests.
void load_parameters(Model& model, WeightSource& weights);

}  // namespace zero

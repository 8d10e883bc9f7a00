#pragma once
// ModuleWeights: the values that a module's parameters have, as a source of weights.
#include <map>
#include <string>

#include "models/weight_source.h"
#include "zero/modules/module_units.h"

namespace zero {

class ModuleWeights final : public WeightSource {
 public:
  /// Of the memory that the parameters have now, whatever they are pointed at afterwards; held until the end.
  explicit ModuleWeights(const ModuleUnits& units);

  /// The parameters have that memory again.
  void give_back(const ModuleUnits& units) const;

  /// Throws InputError for a tensor that is no parameter, or one of another shape.
  void check(const std::vector<TensorSpec>& tensors) override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::map<std::string, at::Tensor> values_;  // by name
};

}  // namespace zero

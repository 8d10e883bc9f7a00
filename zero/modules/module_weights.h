#pragma once
// ModuleWeights: a weight source that reads a module's current parameter values.
#include <map>
#include <string>

#include "models/weight_source.h"
#include "zero/modules/module_units.h"

namespace zero {

class ModuleWeights final : public WeightSource {
 public:
  /// Keeps the parameters' current memory until destroyed, even if the parameters are pointed at other memory.
  explicit ModuleWeights(const ModuleUnits& units);

  /// Points the module's parameters back to their original memory.
  void give_back(const ModuleUnits& units) const;

  /// Throws InputError for a tensor that is not a parameter or has another shape.
  void check(const std::vector<TensorSpec>& tensors) override;
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::map<std::string, at::Tensor> values_;  // by name
};

}  // namespace zero

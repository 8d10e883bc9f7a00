#pragma once
// ModuleUnits: splits a module's parameters into units, each unsharded and resharded as a whole. A unit is a named
// child of the module or a match of the patterns. Each element of a list child (ModuleList, ModuleDict, Sequential) is
// a unit. A child with most of its parameters in lists (TransformerEncoder) is split like the module itself. The other
// parameters form a unit of their own, which is the first unit.
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/parameter_unit.h"
#include "zero/core/group_plan.h"

namespace zero {

class ModuleUnits {
 public:
  /// `patterns`: fnmatch(3) patterns on full module names. The outermost matches of a pattern are units ("layers.*":
  /// one per layer, with everything inside). A unit inside a unit needs another pattern. Keeps the module's tensors
  /// without copying. Throws InputError for a module without parameters or a pattern without matches. Also throws for
  /// parameters that differ in type or device, are sparse or not floating-point, or share memory with each other or a
  /// buffer.
  explicit ModuleUnits(const torch::nn::Module& module, const std::vector<std::string>& patterns = {});

  /// In registration order.
  Units units() const;
  std::vector<std::string> names() const;
  /// All parameter names. A parameter registered several times belongs to its first unit only.
  struct Named {
    std::string name;
    at::Tensor tensor;
    std::string first_name;  // of the same tensor
  };
  const std::vector<Named>& parameters() const { return parameters_; }
  /// Returns advice if one unit holds most of the parameters and could be split.
  std::optional<std::string> large_unit() const;
  /// Marks all parameters as frozen.
  void freeze();
  at::ScalarType type() const { return type_; }
  at::Device device() const { return device_; }

 private:
  class Unit;

  std::vector<std::unique_ptr<ParameterUnit>> units_;
  std::vector<Named> parameters_;
  at::ScalarType type_ = at::kFloat;
  at::Device device_ = at::kCPU;
};

}  // namespace zero

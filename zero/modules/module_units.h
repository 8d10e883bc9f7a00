#pragma once
// ModuleUnits: the parameters of a module in units, each of which comes and goes as a whole. A unit is a named child of
// the module, or what patterns name. A child that is a list (ModuleList, ModuleDict, Sequential) has a unit for each element.
// A child whose parameters are mostly in lists (TransformerEncoder) is parted like the module itself. Parameters in none
// of these are a unit of their own, in front.
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
  /// `patterns`, as fnmatch(3) has them, of the full names of modules: of what a pattern matches the outermost modules are
  /// units ("layers.*": each layer with all that is in it), and units inside of units take other patterns. The module's
  /// tensors are kept, not copied. Throws InputError for a module without parameters, a pattern that matches no module with
  /// parameters, and parameters that are not of one floating type on one device, that share memory with each other or with a
  /// buffer, or that are sparse.
  explicit ModuleUnits(const torch::nn::Module& module, const std::vector<std::string>& patterns = {});

  /// In the order of registration.
  Units units() const;
  std::vector<std::string> names() const;
  /// The parameters with all their names: one that is registered several times stands in its first unit alone.
  struct Named {
    std::string name;
    at::Tensor tensor;
    std::string first_name;  // of the same tensor
  };
  const std::vector<Named>& parameters() const { return parameters_; }
  /// A sentence with the remedy where one unit holds most of the parameters and can be parted.
  std::optional<std::string> large_unit() const;
  /// None is trained.
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

#pragma once
// DeferredWeights: the values of a module that was built on Meta, computed from its tapes when they are asked for.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/weight_source.h"
#include "zero/modules/deferred_tape.h"
#include "zero/modules/module_units.h"

namespace zero {

class DeferredWeights final : public WeightSource {
 public:
  /// Of the tensors that the module has now. `seed`: of random numbers; ranks with one seed have the same values. Throws
  /// InputError for a tensor on Meta that is on no tape.
  DeferredWeights(const torch::nn::Module& module, const ModuleUnits& units, std::uint64_t seed);

  void check(const std::vector<TensorSpec>&) override {}
  /// One tensor is held whole, until another one is asked for.
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

  /// The module's buffers on Meta get their values, whole.
  void fill_buffers(const torch::nn::Module& module, at::Device device) const;

 private:
  struct Deferred {
    const DeferredTape* tape;
    DeferredTensor tensor;
  };
  Deferred deferred(const std::string& what, const at::Tensor& tensor);
  at::Tensor values(const Deferred& tensor) const;

  std::uint64_t seed_;
  std::vector<std::shared_ptr<DeferredTape>> tapes_;
  std::map<std::string, Deferred> parameters_, buffers_;
  std::string name_;   // of the tensor that is held
  at::Tensor values_;  // flat
};

}  // namespace zero

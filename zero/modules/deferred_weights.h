#pragma once
// DeferredWeights: computes the values of a module built on Meta from its tapes, on demand.
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
  /// Covers the tensors that the module has now. `seed`: for random numbers; ranks with equal seeds get equal values.
  /// Throws InputError for a Meta tensor that is not on a tape.
  DeferredWeights(const torch::nn::Module& module, const ModuleUnits& units, std::uint64_t seed);

  void check(const std::vector<TensorSpec>&) override {}
  /// Computes the full tensor on its first read, and keeps it until another tensor is read.
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

  /// Gives the module's Meta buffers memory and values.
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
  std::string name_;   // of the tensor held
  at::Tensor values_;  // flat
};

}  // namespace zero

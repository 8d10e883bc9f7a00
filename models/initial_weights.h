#pragma once
// RandomWeights: a model's initial weights. Every element depends only on the seed, the tensor's name and the element's
// position. The weights do not depend on ranks, stage or the order of reading, and have the same bits on every machine.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/unit.h"
#include "models/weight_source.h"

namespace zero {

struct InitialTensor {
  TensorSpec tensor;
  Init init = Init::normal;
  double scale = 0.02;  // normal: standard deviation; kaiming_uniform: bound
};

class RandomWeights : public WeightSource {
 public:
  RandomWeights(const std::vector<InitialTensor>& tensors, std::uint64_t seed);
  /// Initialises all parameters of the model as their init and init_scale say.
  RandomWeights(const Model& model, std::uint64_t seed);

  void check(const std::vector<TensorSpec>& tensors) override;
  /// Values are drawn in fp32, then rounded or widened to out's type.
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override;

 private:
  std::map<std::string, InitialTensor> tensors_;
  std::uint64_t seed_;
};

/// Draws elements [begin, begin + count) of an endless tensor of N(0, 1) numbers, or of numbers uniform in [-1, 1),
/// times `scale`. Normal draws use the Box-Muller transform and never exceed 6.8.
void draw_normal(std::uint64_t seed, const std::string& name, std::int64_t begin, std::int64_t count, float scale,
                 float* out);
void draw_uniform(std::uint64_t seed, const std::string& name, std::int64_t begin, std::int64_t count, float scale,
                  float* out);

}  // namespace zero

// Muon (Jordan et al. 2024), as torch.optim.Muon has it: momentum is made orthogonal, matrix by matrix, by a
// Newton-Schulz iteration. For matrices inside of blocks.
//
// Pass 0 leaves the direction in the gradient's place, where whole matrices are transform()ed; pass 1 steps along it.
#include <ATen/ATen.h>

#include <cmath>

#include "zero/optim/rules/composed.h"

namespace zero {
namespace {

constexpr double a = 3.4445, b = -4.7750, c = 2.0315, smallest_norm = 1e-7;

/// The direction stands in the gradient's memory. Momentum remembers gradients that were larger than this one, and fp16
/// may not hold it: memory of fp16 holds bf16 numbers, which have the range of fp32. The published rule iterates on
/// bf16.
at::Tensor direction_in(const at::Tensor& gradient) {
  return gradient.scalar_type() == at::kHalf ? gradient.view(at::kBFloat16) : gradient;
}

class Muon final : public ComposedOptimizer {
 public:
  using ComposedOptimizer::ComposedOptimizer;

  bool takes(const TensorTraits& tensor) const override { return tensor.in_block && tensor.shape.size() == 2; }
  bool transforms_matrices() const override { return true; }
  std::vector<StateSpec> states(at::ScalarType master) const override { return {{"momentum_buffer", master}}; }

  int passes() const override { return 2; }
  void update(const UpdateSpan& span, const UpdateContext& context) const override {
    if (context.pass == 0) {
      const at::Tensor gradient = scaled_gradient(span, context);
      const at::Tensor& momentum = span.states[0].lerp_(gradient, 1 - context.momentum);
      direction_in(span.gradient).copy_(context.nesterov ? gradient.lerp_(momentum, context.momentum) : momentum);
      return;
    }
    const auto& shape = context.statistics->shape(span.tensor);
    const double rate = context.lr * std::sqrt(std::max(1.0, double(shape[0]) / double(shape[1])));
    const at::Tensor direction = direction_in(span.gradient).to(span.master.scalar_type());
    span.master.mul_(1 - context.lr * context.weight_decay).sub_(direction, rate);
    write_weights(span);
  }

  // In bf16 on a GPU, whose matrix units are made for it; else as precise as the matrix is, fp32 at least.
  void transform(const at::Tensor& gradient) const override {
    const at::Tensor matrix = direction_in(gradient);
    const bool tall = matrix.size(0) > matrix.size(1);
    const at::ScalarType type = matrix.is_cuda()                      ? at::kBFloat16
                                : matrix.scalar_type() == at::kDouble ? at::kDouble
                                                                      : at::kFloat;
    at::Tensor x = (tall ? matrix.t() : matrix).to(type).contiguous();
    x.div_(ordered_sum_of_squares(x.flatten()).sqrt().clamp_min(smallest_norm).to(type));  // `matrix` where x is it
    for (std::int64_t step = 0; step < options().ns_steps; ++step) {
      const at::Tensor gram = at::mm(x, x.t());
      x = at::addmm(x, at::addmm(gram, gram, gram, b, c), x, a);
    }
    matrix.copy_(tall ? x.t() : x);
  }
};

}  // namespace

OptimizerRow muon_row() {
  return {"muon",
          "Muon as torch has it for matrices in blocks, AdamW for embeddings, head and vectors",
          {"momentum", "nesterov", "ns_steps", "lr_adamw", "betas", "eps"},
          {{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .momentum = 0.95, .nesterov = true, .ns_steps = 5}, "muon"},
          [](const OptimizerOptions& o) -> std::unique_ptr<Optimizer> { return std::make_unique<Muon>(o); }};
}

}  // namespace zero

// Muon (Jordan et al. 2024), as in torch.optim.Muon: a Newton-Schulz iteration orthogonalises momentum, matrix by
// matrix. It is for matrices inside blocks.
//
// Pass 0 writes the direction into the gradient's memory, where whole matrices are transform()ed. Pass 1 takes a step
// in that direction.
#include <ATen/ATen.h>

#include <cmath>

#include "base/activity_clock.h"
#include "zero/optim/rules/composed.h"

namespace zero {
namespace {

constexpr double a = 3.4445, b = -4.7750, c = 2.0315, smallest_norm = 1e-7;

/// The direction is in the gradient's memory. Momentum includes earlier, larger gradients, so it may exceed fp16's
/// range. Memory of an fp16 gradient therefore holds bf16 values, which have the range of fp32. The published rule
/// iterates in bf16.
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

  // Computes in bf16 on a GPU, whose matrix units support it, and where asked. Otherwise computes in the matrix's
  // precision, but at least in fp32.
  void transform(const at::Tensor& gradient) const override {
    const at::Tensor matrix = direction_in(gradient);
    const bool tall = matrix.size(0) > matrix.size(1);
    const at::ScalarType type = matrix.is_cuda() || options().ns_bf16 ? at::kBFloat16
                                : matrix.scalar_type() == at::kDouble ? at::kDouble
                                                                      : at::kFloat;
    at::Tensor x = (tall ? matrix.t() : matrix).to(type).contiguous();
    x.div_(ordered_sum_of_squares(x.flatten()).sqrt().clamp_min(smallest_norm).to(type));  // in place if x is `matrix`
    const ActivityScope products(Activity::products);
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
          "Muon as in torch for matrices in blocks, AdamW for embeddings, head and vectors",
          {"momentum", "nesterov", "ns_steps", "ns_bf16", "lr_adamw", "betas", "eps"},
          {{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .momentum = 0.95, .nesterov = true, .ns_steps = 5}, "muon"},
          [](const OptimizerOptions& o) -> std::unique_ptr<Optimizer> { return std::make_unique<Muon>(o); }};
}

}  // namespace zero

// Prodigy (Mishchenko and Defazio 2023), as in prodigyopt: AdamW whose rate is multiplied by d, a growing estimate of
// the distance to the solution. There is one d for the whole run.
//
// Pass 0 updates the moments and computes the sums for d. Pass 1 takes the step with the previous d.
#include <ATen/ATen.h>

#include <cmath>

#include "zero/optim/rules/composed.h"
#include "zero/optim/rules/prodigy_loops.h"

namespace zero {
namespace {

enum State : int { exp_avg, exp_avg_sq, s, p0 };

/// Scalars of the run, fp64.
struct Kept {
  at::Tensor d, numerator, before;  // `before`: d at the beginning of the step

  explicit Kept(const at::Tensor& kept)
      : d(kept.select(0, 0)), numerator(kept.select(0, 1)), before(kept.select(0, 2)) {}
};

class Prodigy final : public ComposedOptimizer {
 public:
  using ComposedOptimizer::ComposedOptimizer;

  std::vector<StateSpec> states(at::ScalarType master) const override {
    return {{"exp_avg", master}, {"exp_avg_sq", master}, {"s", master}, {"p0", master}};
  }
  int starts_as_weights() const override { return p0; }
  bool by_tensor() const override { return false; }

  std::vector<StatisticSpec> run_statistics() const override { return {{"d", 1}, {"d_numerator", 1}, {"", 1}}; }
  std::int64_t run_sums() const override { return 2; }
  void start(Statistics& statistics) const override {
    Kept kept(statistics.kept_of_run());
    kept.d.fill_(options().d0);
  }

  int passes() const override { return 2; }
  void update(const UpdateSpan& span, const UpdateContext& context) const override;
  void conclude(const UpdateContext& context) const override;

  std::vector<std::pair<std::string, double>> report(const UpdateContext& context) const override {
    const double d = Kept(context.statistics->kept_of_run()).d.item<double>();
    return {{"d", d}, {"d_lr", d * context.own_lr}};
  }

 private:
  double bias_correction(const StepFactors& f) const {
    if (!options().use_bias_correction) return 1;
    const double step = double(f.step);
    return std::sqrt(1 - std::pow(f.beta2, step)) / (1 - std::pow(f.beta1, step));
  }
  // Groups with rates of their own share one d.
  double rate(const UpdateContext& context) const { return context.own_lr * bias_correction(context); }
  void take_in(const UpdateSpan& span, const UpdateContext& context) const;
};

void Prodigy::update(const UpdateSpan& span, const UpdateContext& context) const {
  if (context.pass == 0) return take_in(span, context);
  const Kept kept(context.statistics->kept_of_run());
  if (const ProdigyLoops* loops = prodigy_loops(span)) {
    const double step = kept.before.item<double>() * context.lr * bias_correction(context);
    return loops->take_step(span, {1 - step * context.weight_decay, step, kept.d.item<double>() * context.eps});
  }
  const at::Tensor step = kept.before * (context.lr * bias_correction(context));
  const at::Tensor denominator = span.states[exp_avg_sq].sqrt().add_(kept.d * context.eps);
  span.master.mul_(1 - step * context.weight_decay).sub_((span.states[exp_avg] / denominator).mul_(step));
  write_weights(span);
}

void Prodigy::take_in(const UpdateSpan& span, const UpdateContext& context) const {
  const StepFactors& f = context;
  const double lr = rate(context);
  if (lr == 0 || f.lr == 0) return;  // weights that do not move give no information about the distance
  const Kept kept(context.statistics->kept_of_run());
  const at::Tensor& d = kept.d;
  if (const ProdigyLoops* loops = prodigy_loops(span)) {
    const double now = d.item<double>(), along = now / options().d0 * now * lr;
    const ProdigySums found = loops->take_in(
        span, {f.gradient_scale, f.beta1, f.beta2, std::sqrt(f.beta2), now * (1 - f.beta1), now * now * (1 - f.beta2),
               now / options().d0 * (options().safeguard_warmup ? now : now * lr)});
    const at::Tensor run = context.statistics->sums_of_run();
    run.select(0, 0).add_(found.along * along);
    run.select(0, 1).add_(found.size);
    return;
  }
  const at::Tensor gradient = scaled_gradient(span, f), sums = context.statistics->sums_of_run();
  const double beta3 = std::sqrt(f.beta2);
  sums.select(0, 0).add_(ordered_sum((span.states[p0] - span.master).mul_(gradient)) * (d / options().d0 * d * lr));
  span.states[exp_avg].mul_(f.beta1).add_(gradient * (d * (1 - f.beta1)));
  span.states[exp_avg_sq].mul_(f.beta2).add_(gradient.square().mul_(d * d * (1 - f.beta2)));
  span.states[s].mul_(beta3).add_(gradient.mul(d / options().d0 * (options().safeguard_warmup ? d : d * lr)));
  sums.select(0, 1).add_(ordered_sum(span.states[s].abs()));
}

void Prodigy::conclude(const UpdateContext& context) const {
  if (context.pass != 0 || context.own_lr == 0) return;
  Kept kept(context.statistics->kept_of_run());
  const at::Tensor sums = context.statistics->sums_of_run();
  kept.before.copy_(kept.d);
  kept.numerator.mul_(std::sqrt(context.beta2)).add_(sums.select(0, 0));
  // If all gradients so far were zero, there is no estimate.
  const at::Tensor estimate = kept.numerator / sums.select(0, 1) * options().d_coef;
  kept.d.copy_(at::where(sums.select(0, 1) > 0, at::maximum(kept.d, estimate), kept.d));
}

}  // namespace

OptimizerRow prodigy_row() {
  return {"prodigy",
          "Prodigy as in prodigyopt",
          {"betas", "eps", "d0", "d_coef", "use_bias_correction", "safeguard_warmup"},
          {{.lr = 1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .d0 = 1e-6, .d_coef = 1.0}, "prodigy"},
          [](const OptimizerOptions& o) -> std::unique_ptr<Optimizer> { return std::make_unique<Prodigy>(o); }};
}

}  // namespace zero

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "zero/library/include/zero/nn/sync_batch_norm.h"
#include "zero/library/nn/watched_batch_norm.h"
#include "zero/library/world_impl.h"

namespace zero::nn {
namespace {

/// Statistics over all processes, fp64 [channels].
struct GlobalStatistics {
  at::Tensor mean, variance;  // biased
  double count = 0;           // values per channel
};

/// This process's statistics, fp64 [2 channels + 1]: means, sums of squared deviations, values per channel.
at::Tensor own_statistics(const at::Tensor& x) {
  const std::int64_t channels = x.size(1);
  const at::Tensor own = at::zeros({2 * channels + 1}, x.options().dtype(at::kDouble));
  if (x.numel() == 0) return own;
  const double count = double(x.numel()) / double(channels);
  const auto [mean, variance] = at::batch_norm_update_stats(x, {}, {}, 0);
  own.narrow(0, 0, channels).copy_(mean);
  own.narrow(0, channels, channels).copy_(variance).mul_(count);
  own[2 * channels] = count;
  return own;
}

/// Combines partial statistics by rank as Chan, Golub and LeVeque (1979), which avoids differences of large sums.
GlobalStatistics global_statistics(const at::Tensor& x, const World& world) {
  const std::int64_t channels = x.size(1);
  const at::Tensor own = own_statistics(x);
  const at::Tensor all = at::empty({world.size(), own.numel()}, own.options());
  world.impl().ranks->all_gather_into(all.view({-1}), own);
  const at::Tensor counts = all.select(1, 2 * channels);
  GlobalStatistics global{{}, {}, counts.sum().item<double>()};
  const at::Tensor shares = (counts / global.count).unsqueeze(1), means = all.narrow(1, 0, channels);
  global.mean = (means * shares).sum(0);
  const at::Tensor between = ((means - global.mean).square() * shares).sum(0);
  global.variance = all.narrow(1, channels, channels).sum(0) / global.count + between;
  return global;
}

at::Tensor as_type_of(const at::Tensor& value, const at::Tensor& x) {
  return value.defined() ? value.to(x.scalar_type()) : value;
}

/// (x - mean) / sqrt(variance + eps) * weight + bias, per channel.
at::Tensor normalized(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                      const at::Tensor& variance, double eps) {
  if (x.numel() == 0) return at::empty_like(x);
  return std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance, /*training=*/false, 0, eps));
}

/// 16-bit inputs are computed in fp32.
at::Tensor computed(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x.contiguous() : x.to(at::kFloat).contiguous();
}

class Normalization : public torch::autograd::Function<Normalization> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const std::optional<at::Tensor>& given_weight, const std::optional<at::Tensor>& given_bias,
                            const GlobalStatistics& global, double eps, const World& world) {
    const at::Tensor x = computed(input), weight = given_weight.value_or(at::Tensor()),
                     bias = given_bias.value_or(at::Tensor());
    const at::Tensor mean = as_type_of(global.mean, x), variance = as_type_of(global.variance, x);
    context->save_for_backward({input, weight, mean, variance});
    context->saved_data["eps"] = eps;
    context->saved_data["count"] = global.count;
    context->saved_data["bias_type"] = bias.defined() ? std::int64_t(bias.scalar_type()) : -1;
    context->saved_data["world"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(world));
    return normalized(x, as_type_of(weight, x), as_type_of(bias, x), mean, variance, eps).to(input.scalar_type());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list outputs) {
    if (at::GradMode::is_enabled())
      throw InputError("sync_batch_norm has no second derivative: call backward without create_graph");
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &mean = saved[2], &variance = saved[3];
    const double eps = context->saved_data["eps"].toDouble();
    const bool wants_input = context->needs_input_grad(0);
    const at::Tensor x = computed(input), weight = as_type_of(saved[1], x), dy = as_type_of(outputs[0].contiguous(), x);
    const Gradients own = gradients_at_fixed_statistics(dy, x, weight, mean, variance, eps, wants_input);
    at::Tensor dx;
    if (wants_input) {
      const auto holder = c10::static_intrusive_pointer_cast<Holder>(context->saved_data["world"].toCapsule());
      dx = through_statistics(own, x, weight, mean, variance, eps, context->saved_data["count"].toDouble(),
                              holder->world)
               .to(input.scalar_type());
    }
    const std::int64_t bias_type = context->saved_data["bias_type"].toInt();
    return {dx,
            saved[1].defined() ? own.weight.to(saved[1].scalar_type()) : at::Tensor(),
            bias_type >= 0 ? own.bias.to(at::ScalarType(bias_type)) : at::Tensor(),
            {},
            {},
            {}};
  }

 private:
  struct Holder : torch::CustomClassHolder {
    explicit Holder(const World& world) : world(world) {}
    World world;
  };
  struct Gradients {
    at::Tensor input, weight, bias;
  };

  /// Returns gradients for this process's rows, as if the statistics were constants.
  static Gradients gradients_at_fixed_statistics(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                                 const at::Tensor& mean, const at::Tensor& variance, double eps,
                                                 bool wants_input) {
    if (x.numel() == 0) {
      const at::Tensor zeros = at::zeros({x.size(1)}, x.options());
      return {at::empty_like(x), zeros, zeros};
    }
    auto [dx, dweight, dbias] = at::native_batch_norm_backward(dy, x, weight, mean, variance, {}, {}, /*train=*/false,
                                                               eps, {wants_input, true, true});
    return {dx, dweight, dbias};
  }

  /// Adds the terms through mean and variance: -(sum(dy) + xhat sum(dy xhat)) / count * weight / std, with sums over
  /// all processes. Collective.
  static at::Tensor through_statistics(const Gradients& own, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& mean, const at::Tensor& variance, double eps, double count,
                                       const World& world) {
    const at::Tensor sums = at::stack({own.weight, own.bias}).to(at::kDouble);
    world.impl().sum_gradients(sums);
    at::Tensor scale = (variance.to(at::kDouble) + eps).rsqrt().div_(-count);
    if (weight.defined()) scale.mul_(weight);
    const at::Tensor factors = (sums * scale).to(x.scalar_type());
    return own.input.add_(normalized(x, factors[0], factors[1], mean, variance, eps));
  }
};

std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

void check_count(double count) {
  if (count < 2)
    throw InputError("batch norm in training mode needs at least 2 values a channel, and all processes together have " +
                     std::to_string(std::int64_t(count)) + ": a larger batch, or eval() mode");
}

/// Moves the running statistic towards this batch's.
void move_running(const at::Tensor& running, const at::Tensor& now, double momentum) {
  if (running.defined()) running.copy_(running.to(at::kDouble).mul(1 - momentum).add(now, momentum));
}

}  // namespace

bool is_ordinary(const at::Tensor& input, std::initializer_list<at::Tensor> others, const World& world) {
  const auto fits = [&](const at::Tensor& t) { return !t.defined() || t.scalar_type() == input.scalar_type(); };
  const bool wide = input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble;
  return world.size() == 1 && wide && std::all_of(others.begin(), others.end(), fits);
}

torch::Tensor sync_batch_norm(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias,
                              const torch::Tensor& running_mean, const torch::Tensor& running_var, double momentum,
                              double eps, const World& world) {
  if (is_ordinary(input, {weight, bias, running_mean, running_var}, world)) {
    check_count(double(input.numel()) / double(input.size(1)));
    return at::batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps,
                          at::globalContext().userEnabledCuDNN());
  }
  GlobalStatistics global;
  {
    const at::NoGradGuard no_grad;
    global = global_statistics(computed(input.detach()), world);
    check_count(global.count);
    move_running(running_mean, global.mean, momentum);
    move_running(running_var, global.variance * (global.count / (global.count - 1)), momentum);
  }
  return Normalization::apply(input, if_defined(weight), if_defined(bias), global, eps, world);
}

template <std::size_t D, typename Derived>
void SyncBatchNormImplBase<D, Derived>::_check_input_dim(const torch::Tensor& input) {
  const std::int64_t dims = std::int64_t(D) + 2;
  if ((input.dim() != dims && !(D == 1 && input.dim() == 2)) || input.size(1) != this->options.num_features()) {
    std::ostringstream shape;
    shape << input.sizes();
    throw InputError("SyncBatchNorm" + std::to_string(D) + "d of " + std::to_string(this->options.num_features()) +
                     " channels was given a tensor of " + shape.str() + ": it takes " + std::to_string(dims) +
                     " dimensions, [rows, channels, ...]" + (D == 1 ? ", or [rows, channels]" : ""));
  }
}

template <std::size_t D, typename Derived>
torch::Tensor SyncBatchNormImplBase<D, Derived>::forward(const torch::Tensor& input) {
  _check_input_dim(input);
  const bool tracks = this->options.track_running_stats();
  if (!this->is_training() && tracks) {
    const at::Tensor x = computed(input);
    return at::batch_norm(x, as_type_of(this->weight, x), as_type_of(this->bias, x), as_type_of(this->running_mean, x),
                          as_type_of(this->running_var, x), false, 0, this->options.eps(),
                          at::globalContext().userEnabledCuDNN())
        .to(input.scalar_type());
  }
  const bool moves = this->is_training() && tracks;
  if (moves) this->num_batches_tracked.add_(1);
  double momentum = this->options.momentum().value_or(0);
  if (moves && !this->options.momentum().has_value())  // cumulative mean over batches
    momentum = 1.0 / this->num_batches_tracked.template item<double>();
  return sync_batch_norm(input, this->weight, this->bias, this->running_mean, this->running_var, momentum,
                         this->options.eps(), world_);
}

template <std::size_t D, typename Derived>
void SyncBatchNormImplBase<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << "zero::nn::SyncBatchNorm" << D << "d(" << this->options.num_features() << ", eps=" << this->options.eps()
         << ", affine=" << std::boolalpha << this->options.affine()
         << ", track_running_stats=" << this->options.track_running_stats() << ", processes=" << world_.size() << ')';
}

template class SyncBatchNormImplBase<1, SyncBatchNorm1dImpl>;
template class SyncBatchNormImplBase<2, SyncBatchNorm2dImpl>;
template class SyncBatchNormImplBase<3, SyncBatchNorm3dImpl>;

}  // namespace zero::nn

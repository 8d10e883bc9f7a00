#include "zero/library/nn/watched_batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include "zero/library/include/zero/nn/sync_batch_norm.h"
#include "zero/modules/parameter_watch.h"

namespace zero::nn {
namespace {

/// The mark on a converted norm's running mean; it reaches every aten::batch_norm call with that mean.
struct SyncMark : c10::BackendMeta {
  explicit SyncMark(const World& world) : world(world) {}
  World world;
};

const SyncMark* mark_of(const at::Tensor& running_mean) {
  if (!running_mean.defined()) return nullptr;
  return dynamic_cast<const SyncMark*>(running_mean.unsafeGetTensorImpl()->get_backend_meta());
}

at::Tensor tensor_of(const c10::IValue& value) { return value.isTensor() ? value.toTensor() : at::Tensor(); }

bool differ_in_type(const at::Tensor& weight, const at::Tensor& statistics) {
  return weight.defined() && statistics.defined() && weight.scalar_type() != statistics.scalar_type();
}

/// aten::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled) with a
/// watched tensor among the arguments.
void batch_norm(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 9);
  const at::Tensor input = arguments[0].toTensor(), weight = tensor_of(arguments[1]), bias = tensor_of(arguments[2]),
                   mean = tensor_of(arguments[3]), variance = tensor_of(arguments[4]);
  const bool training = arguments[5].toBool();
  const double momentum = arguments[6].toDouble(), eps = arguments[7].toDouble();
  at::Tensor y;
  const SyncMark* mark = mark_of(mean);
  if (mark && training && !is_ordinary(input, {weight, bias, mean, variance}, mark->world))
    y = sync_batch_norm(input, weight, bias, mean, variance, momentum, eps, mark->world);
  else if (differ_in_type(weight, mean) || differ_in_type(bias, mean))
    y = at::batch_norm(input, weight.defined() ? weight.to(mean.scalar_type()) : weight,
                       bias.defined() ? bias.to(mean.scalar_type()) : bias, mean, variance, training, momentum, eps,
                       arguments[8].toBool());
  else
    return call_watched(operation, stack);
  torch::jit::drop(*stack, 9);
  torch::jit::push(*stack, y);
}

}  // namespace

void synchronize(const at::Tensor& running_mean, const World& world) {
  running_mean.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<SyncMark>(world));
  watch_parameter(running_mean);
}

void link_watched_batch_norm() {}

}  // namespace zero::nn

TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  library.impl("batch_norm", torch::CppFunction::makeFromBoxedFunction<&zero::nn::batch_norm>());
}

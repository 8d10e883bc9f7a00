#include "zero/library/include/zero/nn/convert_sync_batchnorm.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>
#include <torch/nn/modules/batchnorm.h>

#include "base/error.h"
#include "zero/library/include/zero/nn/sync_batch_norm.h"
#include "zero/modules/parameter_watch.h"

namespace zero::nn {
namespace {

/// What a converted norm's running mean carries, and through it every call of aten::batch_norm that is given it.
struct SyncMark : c10::BackendMeta {
  explicit SyncMark(const World& world) : world(world) {}
  World world;
};

const SyncMark* mark_of(const c10::IValue& running_mean) {
  if (!running_mean.isTensor() || !running_mean.toTensor().defined()) return nullptr;
  return dynamic_cast<const SyncMark*>(running_mean.toTensor().unsafeGetTensorImpl()->get_backend_meta());
}

at::Tensor tensor_of(const c10::IValue& value) { return value.isTensor() ? value.toTensor() : at::Tensor(); }

/// aten::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled), where one of
/// the tensors is watched.
void batch_norm(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 9);
  const SyncMark* mark = mark_of(arguments[3]);
  if (!mark || !arguments[5].toBool()) return call_watched(operation, stack);
  const at::Tensor y = sync_batch_norm(arguments[0].toTensor(), tensor_of(arguments[1]), tensor_of(arguments[2]),
                                       tensor_of(arguments[3]), tensor_of(arguments[4]), arguments[6].toDouble(),
                                       arguments[7].toDouble(), mark->world);
  torch::jit::drop(*stack, 9);
  torch::jit::push(*stack, y);
}

/// Whether the module is such a norm; then it is converted.
template <typename Norm>
bool convert(torch::nn::Module& module, const std::string& name, const World& world) {
  auto* norm = module.as<Norm>();
  if (!norm) return false;
  if (!norm->running_mean.defined())
    throw InputError("convert_sync_batchnorm: " + (name.empty() ? std::string("the module") : name) +
                     " keeps no running statistics, by which a converted norm is known: make it a "
                     "zero::nn::SyncBatchNorm instead");
  norm->running_mean.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<SyncMark>(world));
  watch_parameter(norm->running_mean);
  return true;
}

}  // namespace

int convert_sync_batchnorm(torch::nn::Module& module, const World& world) {
  int converted = 0;
  for (const auto& item : module.named_modules())
    converted += convert<torch::nn::BatchNorm1dImpl>(*item.value(), item.key(), world) ||
                 convert<torch::nn::BatchNorm2dImpl>(*item.value(), item.key(), world) ||
                 convert<torch::nn::BatchNorm3dImpl>(*item.value(), item.key(), world);
  return converted;
}

}  // namespace zero::nn

TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  library.impl("batch_norm", torch::CppFunction::makeFromBoxedFunction<&zero::nn::batch_norm>());
}

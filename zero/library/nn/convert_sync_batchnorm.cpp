#include "zero/library/include/zero/nn/convert_sync_batchnorm.h"

#include <torch/nn/modules/batchnorm.h>

#include "base/error.h"
#include "zero/library/nn/watched_batch_norm.h"

namespace zero::nn {
namespace {

/// Converts the module and returns true if it is such a norm.
template <typename Norm>
bool convert(torch::nn::Module& module, const std::string& name, const World& world) {
  auto* norm = module.as<Norm>();
  if (!norm) return false;
  if (!norm->running_mean.defined())
    throw InputError("convert_sync_batchnorm: " + (name.empty() ? std::string("the module") : name) +
                     " keeps no running statistics, by which a converted norm is known: make it a "
                     "zero::nn::SyncBatchNorm instead");
  synchronize(norm->running_mean, world);
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

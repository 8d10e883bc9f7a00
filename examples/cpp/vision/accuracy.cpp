#include "accuracy.h"

#include <torch/torch.h>

#include <zero/loader.h>

namespace vision {

double accuracy(const Cifar10& pictures, const zero::World& world, std::int64_t batch_size,
                const std::function<torch::Tensor(const torch::Tensor&)>& logits) {
  const torch::NoGradGuard no_grad;
  std::int64_t right = 0, all = 0;
  Cifar10 copy = pictures;
  for (auto& batch :
       zero::make_data_loader(copy.map(torch::data::transforms::Stack<>()), world, {.batch_size = batch_size})) {
    const torch::Tensor hits = world.gather_for_metrics(logits(batch.data).argmax(1) == batch.target);
    right += hits.sum().item<std::int64_t>();
    all += hits.size(0);
  }
  return double(right) / double(all);
}

}  // namespace vision

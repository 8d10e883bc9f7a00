#pragma once
// The accuracy of a classifier over several processes.
#include <torch/types.h>
#include <zero/world.h>

#include <cstdint>
#include <functional>

#include "cifar10.h"

namespace vision {

/// The share of pictures whose class has the largest of `logits(pictures)` [rows, classes]. Each picture counts once,
/// whatever the processes and batches. Put the model into eval mode before. Collective.
double accuracy(const Cifar10& pictures, const zero::World& world, std::int64_t batch_size,
                const std::function<torch::Tensor(const torch::Tensor&)>& logits);

}  // namespace vision

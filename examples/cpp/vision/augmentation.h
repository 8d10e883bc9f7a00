#pragma once
// CropAndFlip: the usual augmentation of small pictures (He et al. 2016, CIFAR-10). It depends on the seed, the epoch
// and the number of the sample alone. The picture is therefore the same on every process and thread, in every order.
#include <torch/types.h>

#include <cstdint>

namespace vision {

struct CropAndFlip {
  std::int64_t padding = 4;  // zeros on each side; then a part of the picture's own size is cut out
  bool flip = true;          // left and right change places in half of the cases
  std::uint64_t seed = 0;

  /// A picture [channels, height, width] of any type.
  torch::Tensor operator()(const torch::Tensor& picture, std::int64_t epoch, std::size_t sample) const;
};

}  // namespace vision

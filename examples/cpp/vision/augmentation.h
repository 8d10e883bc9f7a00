#pragma once
// CropAndFlip: the usual augmentation of small pictures (He et al. 2016, CIFAR-10). It depends only on the seed, the
// epoch and the sample's number. The augmented picture is therefore the same on every process and thread, in every
// order.
#include <torch/types.h>

#include <cstdint>

namespace vision {

struct CropAndFlip {
  std::int64_t padding = 4;  // zeros on each side; a part of the picture's size is then cropped
  bool flip = true;          // flip left and right with probability 1/2 in each epoch
  bool alternating = false;  // with `flip`: draw once, then flip in every second epoch (Jordan 2024, arXiv 2404.00498)
  std::uint64_t seed = 0;

  /// `picture`: [channels, height, width] of any type.
  torch::Tensor operator()(const torch::Tensor& picture, std::int64_t epoch, std::size_t sample) const;
};

}  // namespace vision

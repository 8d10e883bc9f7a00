#include "augmentation.h"

#include <ATen/ATen.h>

#include "base/random.h"

namespace vision {

torch::Tensor CropAndFlip::operator()(const torch::Tensor& picture, std::int64_t epoch, std::size_t sample) const {
  zero::SplitMix64 random(zero::mix_seed(zero::mix_seed(seed, std::uint64_t(epoch)), sample));
  const std::int64_t height = picture.size(1), width = picture.size(2);
  const std::int64_t top = random.below(std::uint64_t(2 * padding + 1)),
                     left = random.below(std::uint64_t(2 * padding + 1));
  zero::SplitMix64 once(zero::mix_seed(seed, sample));
  const std::uint64_t draw = alternating ? once.below(2) + std::uint64_t(epoch) : random.below(2);
  const bool turns = flip && draw % 2 == 1;
  at::Tensor cut =
      at::constant_pad_nd(picture, {padding, padding, padding, padding}).narrow(1, top, height).narrow(2, left, width);
  return turns ? cut.flip(2) : cut.contiguous();
}

}  // namespace vision

#include "zero/library/include/zero/samplers.h"

#include <torch/serialize/archive.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace zero {

std::vector<std::size_t> shuffled_order(std::size_t size, std::uint64_t seed, std::int64_t epoch) {
  if (size > (std::size_t{1} << 32))
    throw InputError("a set of " + std::to_string(size) + " samples is to be shuffled: at most 2^32 are; divide it");
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  SplitMix64 random(mix_seed(seed, std::uint64_t(epoch)));
  for (std::size_t last = size; last > 1; --last) std::swap(order[last - 1], order[random.below(last)]);
  return order;
}

ShuffledSampler::ShuffledSampler(std::size_t size, std::uint64_t seed)
    : size_(size), seed_(seed), epoch_(std::make_shared<std::int64_t>(0)) {
  reset();
}

void ShuffledSampler::set_epoch(std::int64_t epoch) { *epoch_ = epoch; }
std::int64_t ShuffledSampler::epoch() const { return *epoch_; }

void ShuffledSampler::reset(std::optional<std::size_t> new_size) {
  size_ = new_size.value_or(size_);
  order_ = shuffled_order(size_, seed_, *epoch_);
  next_ = 0;
}

std::optional<std::vector<std::size_t>> ShuffledSampler::next(std::size_t batch_size) {
  if (next_ == order_.size()) return std::nullopt;
  const std::size_t end = std::min(order_.size(), next_ + batch_size);
  std::vector<std::size_t> indices(order_.begin() + std::ptrdiff_t(next_), order_.begin() + std::ptrdiff_t(end));
  next_ = end;
  return indices;
}

void ShuffledSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("seed", torch::IValue(std::int64_t(seed_)));
  archive.write("epoch", torch::IValue(*epoch_));
  archive.write("next", torch::IValue(std::int64_t(next_)));
}

void ShuffledSampler::load(torch::serialize::InputArchive& archive) {
  torch::IValue seed, epoch, next;
  archive.read("seed", seed);
  archive.read("epoch", epoch);
  archive.read("next", next);
  seed_ = std::uint64_t(seed.toInt());
  set_epoch(epoch.toInt());
  reset();
  next_ = std::min(std::size_t(next.toInt()), order_.size());
}

}  // namespace zero

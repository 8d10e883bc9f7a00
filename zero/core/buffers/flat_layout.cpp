#include "zero/core/buffers/flat_layout.h"

#include <algorithm>

#include "base/error.h"

namespace zero {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatLayout::FlatLayout(const std::vector<std::vector<TensorSpec>>& parameters, int shards, std::int64_t alignment)
    : shards_(shards), alignment_(alignment) {
  ZERO_CHECK(shards >= 1 && alignment >= 1, "a layout needs at least one shard");
  std::int64_t offset = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    offset = round_up(offset, alignment);
    parameter_offsets_.push_back(offset);
    for (const TensorSpec& spec : parameters[p]) {
      tensors_.push_back({spec, offset, int(p)});
      offset += spec.numel();
      used_ += spec.numel();
    }
  }
  numel_ = round_up(offset, alignment * shards);
}

FlatLayout FlatLayout::of_rank(int rank) const {
  std::vector<std::vector<TensorSpec>> parameters(parameter_offsets_.size());
  for (const FlatTensor& tensor : tensors_)
    parameters[std::size_t(tensor.parameter)].push_back(tensor.spec.of_rank(rank));
  return FlatLayout(parameters, shards_, alignment_);
}

std::vector<FlatSlice> FlatLayout::slices(std::int64_t begin, std::int64_t count) const {
  std::vector<FlatSlice> found;
  const std::int64_t end = begin + count;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const std::int64_t first = std::max(begin, tensors_[t].offset);
    const std::int64_t last = std::min(end, tensors_[t].offset + tensors_[t].spec.numel());
    if (first < last) found.push_back({int(t), first - tensors_[t].offset, first - begin, last - first});
  }
  return found;
}

}  // namespace zero

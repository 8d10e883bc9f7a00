#include "zero/core/states/state_layout.h"

#include <algorithm>

#include "base/error.h"

namespace zero {

StateLayout::StateLayout(const FlatLayout& flat, std::vector<StateTensor> tensors, std::int64_t grain)
    : flat_(flat.tensors()), tensors_(std::move(tensors)), grain_(grain) {
  ZERO_CHECK(!tensors_.empty(), "states of no tensor");
  for (StateTensor& tensor : tensors_) {
    tensor.offset = (numel_ + grain - 1) / grain * grain;
    numel_ = tensor.offset + flat_of(tensor).spec.numel();
    ZERO_CHECK(flat_of(tensor).offset % grain == 0, flat_of(tensor).spec.name + " does not begin with a block");
  }
}

std::int64_t StateLayout::position_of(std::int64_t flat) const {
  for (const StateTensor& tensor : tensors_) {
    const FlatTensor& place = flat_of(tensor);
    if (flat < place.offset + place.spec.numel()) return tensor.offset + std::max<std::int64_t>(0, flat - place.offset);
  }
  return numel_;
}

std::vector<StateSegment> StateLayout::segments(std::int64_t begin, std::int64_t count, bool by_tensor) const {
  std::vector<StateSegment> found;
  for (const StateTensor& tensor : tensors_) {
    const FlatTensor& place = flat_of(tensor);
    const std::int64_t first = std::max(begin, place.offset),
                       end = std::min(begin + count, place.offset + place.spec.numel());
    if (first >= end) continue;
    if (by_tensor && place.spec.cut) {  // each run is contiguous in the full tensor
      for_each_run(place.spec, first - place.offset, end - first,
                   [&](std::int64_t full_begin, std::int64_t done, std::int64_t run) {
                     const std::int64_t flat = first + done;
                     found.push_back({tensor.offset + flat - place.offset, flat, run, &tensor, full_begin});
                   });
      continue;
    }
    const StateSegment next{tensor.offset + first - place.offset, first, end - first, &tensor, first - place.offset};
    const bool joins = !by_tensor && !found.empty() && found.back().tensor->rule == tensor.rule &&
                       found.back().begin + found.back().count == next.begin &&
                       found.back().flat_begin + found.back().count == next.flat_begin;
    if (joins)
      found.back().count += next.count;
    else
      found.push_back(next);
  }
  return found;
}

std::vector<FlatSlice> StateLayout::slices(std::int64_t begin, std::int64_t count) const {
  std::vector<FlatSlice> found;
  for (int t = 0; t < int(tensors_.size()); ++t) {
    const std::int64_t offset = tensors_[std::size_t(t)].offset, first = std::max(begin, offset),
                       end = std::min(begin + count, offset + spec(t).numel());
    if (first < end) found.push_back({t, first - offset, first - begin, end - first});
  }
  return found;
}

std::vector<FlatTensor> StateLayout::saved_tensors() const {
  std::vector<FlatTensor> saved;
  for (const StateTensor& tensor : tensors_) saved.push_back({flat_of(tensor).spec, tensor.offset, 0});
  return saved;
}

}  // namespace zero

#pragma once
// StateLayout: the positions of a group's tensors in the states of the optimizer that updates them. Tensors are
// adjacent, in the order of the flat vector. It holds integers only.
#include <cstdint>
#include <vector>

#include "zero/core/buffers/flat_layout.h"
#include "zero/optim/optimizer_set.h"

namespace zero {

struct StateTensor {
  int tensor = 0;           // index into FlatLayout::tensors()
  std::int64_t offset = 0;  // of its first element in the states
  TensorRule rule;
  int number = 0;  // index among all tensors of the optimizer
};

/// Elements that are contiguous in the states and in the flat vector, and belong to one tensor if the caller requires
/// it.
struct StateSegment {
  std::int64_t begin = 0;  // in the states
  std::int64_t flat_begin = 0;
  std::int64_t count = 0;
  const StateTensor* tensor = nullptr;  // the first one
  std::int64_t tensor_begin = 0;
};

class StateLayout {
 public:
  /// `tensors`: with tensor, rule and number set. In the states each tensor begins at a multiple of `grain` elements.
  StateLayout(const FlatLayout& flat, std::vector<StateTensor> tensors, std::int64_t grain);

  /// Returns the layout of the states on another rank of the tensor axis. `flat`: that rank's FlatLayout.
  StateLayout of_rank(const FlatLayout& flat) const { return StateLayout(flat, tensors_, grain_); }

  int optimizer() const { return tensors_.front().rule.optimizer; }
  const std::vector<StateTensor>& tensors() const { return tensors_; }
  std::int64_t numel() const { return numel_; }
  /// Returns the position in the states of the first element at or after element `flat` of the flat vector. It never
  /// decreases as `flat` increases, so dividing the flat vector also divides the states.
  std::int64_t position_of(std::int64_t flat) const;
  /// Returns the segments of the flat elements [begin, begin + count), ascending. Unless `by_tensor` is set, tensors
  /// with the same update rule share a segment.
  std::vector<StateSegment> segments(std::int64_t begin, std::int64_t count, bool by_tensor) const;
  /// Returns the slices of tensors() inside the states [begin, begin + count), ascending.
  std::vector<FlatSlice> slices(std::int64_t begin, std::int64_t count) const;
  const TensorSpec& spec(int tensor) const { return flat_of(tensors_[std::size_t(tensor)]).spec; }
  /// Returns the tensors with their offsets in the states, as a checkpoint lists them.
  std::vector<FlatTensor> saved_tensors() const;

 private:
  const FlatTensor& flat_of(const StateTensor& tensor) const { return flat_[std::size_t(tensor.tensor)]; }

  std::vector<FlatTensor> flat_;
  std::vector<StateTensor> tensors_;
  std::int64_t grain_;
  std::int64_t numel_ = 0;
};

}  // namespace zero

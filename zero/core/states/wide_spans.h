#pragma once
// WideSpans: spans as rules see them, in fp32, where states are stored in fewer bytes (StateStorage). A span is widened
// into memory of a cache's size, a rule updates it there, and it is stored again. A span that is wide as it is stays
// so.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "zero/optim/kernels/stored_states.h"
#include "zero/optim/optimizer.h"

namespace zero {

class WideSpans {
 public:
  /// `stored`: the states that the optimizer updates on the device, as they are stored. The optimizer outlives this.
  WideSpans(const std::vector<StateSpec>& stored, const Optimizer& optimizer, at::Device device);

  /// True if any state is stored in fewer bytes.
  bool needed() const { return narrow_ > 0; }
  /// Elements of the longest span.
  std::int64_t longest() const;
  /// True if each thread of the host takes a span of its own. A rule of several passes sums in the order of spans, so
  /// they follow each other there.
  bool by_threads() const;

  /// Takes the memory for an update of `elements` elements, and gives it back.
  void take(std::int64_t elements);
  void release() { scratch_.reset(); }

  /// `stored`: a span with a remainder (kShort) as its master where that is split, and states in bf16 where they are.
  /// Returns it with fp32 copies of both, in the thread's memory. It has no weights where the master is split:
  /// store_master() writes them.
  UpdateSpan widen(const UpdateSpan& stored) const;

  /// visit(draws, first, begin, count) for the elements of the span that lie side by side in one tensor, by the state.
  using Draw =
      std::function<void(const RoundingDraws& draws, std::int64_t first, std::int64_t begin, std::int64_t count)>;
  using Draws = std::function<void(std::size_t state, const Draw& visit)>;
  /// After a rule has updated widen(stored): stores the states, and a split master with its weights.
  void store_states(const UpdateSpan& wide, const UpdateSpan& stored, const Draws& draws) const;
  static void store_master(const UpdateSpan& wide, const UpdateSpan& stored);

 private:
  const Optimizer& optimizer_;
  at::Device device_;
  std::int64_t narrow_ = 0;  // arrays that are stored in fewer bytes
  at::Tensor scratch_;       // [threads, narrow arrays, elements]
};

}  // namespace zero

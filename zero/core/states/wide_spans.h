#pragma once
// WideSpans: spans in fp32 as update rules see them, for states that are stored in fewer bytes (StateStorage). A span
// is widened into cache-sized memory, the rule updates it, and it is stored again. A span that is already in fp32 is
// used directly.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "zero/optim/kernels/stored_states.h"
#include "zero/optim/optimizer.h"

namespace zero {

class WideSpans {
 public:
  /// `stored`: the states that the optimizer updates on the device, as stored. The optimizer must outlive this object.
  WideSpans(const std::vector<StateSpec>& stored, const Optimizer& optimizer, at::Device device);

  /// Returns true if any state is stored in fewer bytes than fp32.
  bool needed() const { return narrow_ > 0; }
  /// Elements of the longest span.
  std::int64_t longest() const;
  /// Returns true if host threads work on separate spans. An update rule with several passes sums in the order of
  /// spans, so its spans run one after the other.
  bool by_threads() const;

  /// take() allocates the memory for an update of `elements` elements; release() frees it.
  void take(std::int64_t elements);
  void release() { scratch_.reset(); }

  /// Returns the span with fp32 copies of its master and states, in the thread's memory. `stored`: a span whose master
  /// may be a remainder (kShort), and whose states may be in bf16. If the master is split, the result has no weights;
  /// store_master() writes them.
  UpdateSpan widen(const UpdateSpan& stored) const;

  /// Per state: visit(draws, first, begin, count) for the span's elements that are contiguous in one tensor.
  using Draw =
      std::function<void(const RoundingDraws& draws, std::int64_t first, std::int64_t begin, std::int64_t count)>;
  using Draws = std::function<void(std::size_t state, const Draw& visit)>;
  /// Stores the states, and a split master with its weights. Call it after the rule has updated widen(stored).
  void store_states(const UpdateSpan& wide, const UpdateSpan& stored, const Draws& draws) const;
  static void store_master(const UpdateSpan& wide, const UpdateSpan& stored);

 private:
  const Optimizer& optimizer_;
  at::Device device_;
  std::int64_t narrow_ = 0;  // number of arrays that are stored in fewer bytes
  at::Tensor scratch_;       // [threads, narrow arrays, elements]
};

}  // namespace zero

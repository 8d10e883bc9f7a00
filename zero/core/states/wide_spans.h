#pragma once
// WideSpans: spans of states as rules see them, in fp32, where they are stored in fewer bytes (StateStorage). A span is
// widened into memory of a cache's size, updated there by a rule that knows nothing of it, and stored again.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "zero/optim/kernels/stored_states.h"
#include "zero/optim/optimizer.h"

namespace zero {

class WideSpans {
 public:
  explicit WideSpans(const std::vector<StateSpec>& stored);

  /// True if any state is stored in fewer bytes; else spans are wide as they are.
  bool needed() const { return narrow_ > 0; }
  /// Elements of the longest span that is widened, and whether threads of the host take one each. Where sums are taken
  /// between passes spans are the rule's own, one after the other, since the sums' order follows from them.
  static std::int64_t longest(const Optimizer& optimizer, at::DeviceType device);
  static bool by_threads(const Optimizer& optimizer, at::DeviceType device);

  /// Takes memory for spans of at most so many elements, of as many threads as there are or of one, and gives it back.
  void take(std::int64_t elements, bool by_threads, at::Device device);
  void release() { scratch_.reset(); }

  /// `stored`: a span with a remainder (kShort) for its master where that is split, and states in bf16 where they are. Of
  /// what is stored in fewer bytes copies in fp32, in the thread's memory; the rest as it is. Without weights where the
  /// master is split: store_master() writes them.
  UpdateSpan widen(const UpdateSpan& stored) const;

  /// visit(draws, first, begin, count) for the elements of the span that lie side by side in one tensor, by the state.
  using Draw =
      std::function<void(const RoundingDraws& draws, std::int64_t first, std::int64_t begin, std::int64_t count)>;
  using Draws = std::function<void(std::size_t state, const Draw& visit)>;
  /// What the rule has made of widen(stored): states, and a split master with its weights.
  void store_states(const UpdateSpan& wide, const UpdateSpan& stored, const Draws& draws) const;
  static void store_master(const UpdateSpan& wide, const UpdateSpan& stored);

 private:
  std::int64_t narrow_ = 0;  // arrays that are stored in fewer bytes
  at::Tensor scratch_;       // [threads, narrow arrays, elements]
};

}  // namespace zero

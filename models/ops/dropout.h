#pragma once
// Dropout: the probability and the key of a mask of zeros (Srivastava et al. 2014). Draws come from counters
// (base/philox.h), so no mask is kept: backward draws it again. A draw depends only on the key and on the element's
// place in the step and the model, so ranks, micro-batches, threads and recomputation change nothing.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace zero {

struct Dropout {
  double share = 0;        // probability that an element is zeroed (others are scaled up); 0 outside training
  std::uint64_t seed = 0;  // differs for every place in the model and every step
  // The global number of the tensor's first sequence, and the length of sequences. Draws are keyed by sequence and
  // position, so they do not depend on how sequences are divided into batches.
  std::int64_t first_sample = 0;
  std::int64_t sequence = 1;
  std::int64_t first_row = 0;     // the tensor's first row, counted from the beginning of the first sequence
  std::int64_t first_column = 0;  // the tensor's first column in the full width
};

/// Returns 0 or 1 / (1 - share) for every element of z [n, width], in z's type and on its device. Every device draws
/// the same mask.
at::Tensor dropout_mask(const Dropout& dropout, const at::Tensor& z);

/// The dropout of attention's probabilities, for the heads that a rank computes.
struct HeadDropout {
  double share = 0;
  std::uint64_t seed = 0;
  std::int64_t first_sample = 0;  // global number of the batch's first sequence
  std::int64_t first_head = 0;    // number of the rank's first query head in the whole model

  /// The draws of one head in one row of the batch: queries by keys, [length, length]. A head's keys begin 2^32 columns
  /// after those of the head before it.
  Dropout of(std::int64_t row, std::int64_t head, std::int64_t length) const {
    return {share, seed, first_sample + row, length, 0, (first_head + head) << 32};
  }
};

}  // namespace zero

#pragma once
// Divergence: KTO's estimate of how far the model is from its reference (Ethayarajh et al. 2024), as in TRL: the mean
// over mismatched answers of log p - reference log p, but at least 0.
#include <cstdint>
#include <functional>

#include "zero/core/engine.h"
#include "zero/data/rows/loader.h"

namespace zero {

/// Batches of mismatched answers with their reference (zero/data/examples/judged_rows.h).
struct MismatchedBatches {
  std::int64_t rows = 0, micro_batches = 0;                         // rows over all ranks
  std::function<Batch(std::int64_t micro_batch)> batch;             // on the host
  std::function<std::int64_t(std::int64_t micro_batch)> first_row;  // the batch's first row among `rows`
  std::function<bool()> goes_on = {};  // called between two batches, and ends the pass by false; may be empty
};

/// The divergence under the engine's weights; NaN if a log p is not finite. Every layout of ranks sums the rows in the
/// same order. Collective.
double divergence_of(Engine& engine, const MismatchedBatches& batches);

/// log p [B, sequences of a row] of a batch on the host. Collective.
at::Tensor log_probabilities_of(Engine& engine, const Batch& batch, std::int64_t sequences);

}  // namespace zero

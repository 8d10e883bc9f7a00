#pragma once
// Reads weights in chunks of bounded size, for writers that never hold a whole tensor.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "models/weight_source.h"

namespace zero {

struct ChunkOptions {
  at::ScalarType type = at::kFloat;     // the type in which values will be stored
  std::int64_t rows_together = 1;       // every chunk but the last holds a multiple of this many rows
  std::int64_t max_elements = 1 << 24;  // in a chunk, unless rows_together needs more
};

/// Calls `take` with consecutive chunks of the tensor's values: fp32, contiguous, [rows, columns] (a vector is one
/// row). A chunk is valid only during the call. Throws InputError, with the tensor's name, for a value that is not
/// finite or that `type` cannot hold.
void read_in_chunks(WeightSource& weights, const TensorSpec& tensor, const ChunkOptions& options,
                    const std::function<void(const at::Tensor&)>& take);

}  // namespace zero

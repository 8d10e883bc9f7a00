#pragma once
// Copies batches to a GPU.
#include <ATen/core/Tensor.h>

#include "models/unit.h"

namespace zero {

/// The batch on the device; the copies wait for nothing. On the CPU it is the batch itself. If rows hold several
/// documents, attention needs more, made once for all layers. In bf16 and fp16 that is `spans`, whose kernel skips
/// other documents. In fp32, and if a document's tokens are not adjacent, it is `bias`, with 4 bytes for each pair of a
/// row's tokens. Padding counts as a document.
Batch to_device(const Batch& batch, at::Device device, at::ScalarType compute);

}  // namespace zero

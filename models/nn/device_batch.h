#pragma once
// Copies batches to a GPU.
#include <ATen/core/Tensor.h>

#include "models/unit.h"

namespace zero {

/// Returns the batch on the device, copied without waiting. For the CPU, returns the batch itself. If rows hold several
/// documents, also makes the tensor with which attention separates them, once for all layers. In bf16 and fp16 that is
/// `spans`, whose kernel skips other documents. In fp32 that is `bias`, with 4 bytes for each pair of a row's tokens. A
/// document whose tokens are not adjacent needs `bias` too, and so does a trunk. Padding counts as a document.
Batch to_device(const Batch& batch, at::Device device, at::ScalarType compute);

}  // namespace zero

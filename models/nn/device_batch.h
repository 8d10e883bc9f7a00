#pragma once
// Batches on their way to a GPU.
#include <ATen/core/Tensor.h>

#include "models/unit.h"

namespace zero {

/// The batch on the device; the copies wait for nothing. On the CPU the batch itself. Where rows hold several
/// documents, also what attention there needs of them, once for all layers: `spans` in bf16 and fp16, whose kernel
/// skips what lies in other documents; `bias`, 4 bytes for each pair of a row's tokens, in fp32, and where a document's
/// tokens do not stand side by side. Filling counts as a document.
Batch to_device(const Batch& batch, at::Device device, at::ScalarType compute);

}  // namespace zero

#pragma once
// ActivationPlan: the memory of one micro-batch in addition to the model's states, measured by running it on Meta.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>

#include "models/model.h"
#include "zero/core/engine.h"

namespace zero {

struct ActivationWork : KeptOptions {
  std::int64_t batch = 1;  // sequences in a micro-batch
  std::int64_t seq_len = 1;
  at::ScalarType compute = at::kBFloat16;
  std::int64_t logits_bytes = 0;                   // of one chunk; 0: the CPU's default
  bool masked_targets = false;                     // true if some targets are not trained
  std::optional<at::ScalarType> written_gradient;  // as ParameterGroup::written_gradient()
  bool on_device = false;                          // a GPU computes, with LibTorch's fused attention
  bool packed = false;                             // rows hold several documents
  int context_ranks = 1;                           // ranks that share the tokens of rows
  int tensor_ranks = 1;            // ranks that divide a context part; the model holds one rank's slices
  int stages = 1, stage = 0;       // stages of a pipeline, and the number of the planned one
  std::int64_t micro_batches = 1;  // of a step; used for a pipeline
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int chunks = 1;

  auto operator<=>(const ActivationWork&) const = default;
};

/// In bytes. The parts of the peak are the bytes alive at the moment of the peak.
struct ActivationBytes {
  std::int64_t batch = 0;           // ids, targets and document numbers
  std::int64_t at_rest = 0;         // tables that persist from step to step
  std::int64_t kept = 0;            // alive between forward and backward, for all live micro-batches of a stage
  std::int64_t on_host = 0;         // GPU run, page-locked: inputs of recomputed blocks
  std::int64_t activations = 0;     // part of the peak; includes at_rest
  std::int64_t logits = 0;          // part of the peak: the head's token chunks
  std::int64_t unit_gradients = 0;  // part of the peak: leaf gradients that are not packed yet
  std::int64_t peak() const { return activations + logits + unit_gradients; }
};

/// `model`: as trained, with frozen weights and adapters. Its parameters have no tensors afterwards.
ActivationBytes plan_activations(const Model& model, const ActivationWork& work);

}  // namespace zero

#pragma once
// ActivationPlan: what one micro-batch takes beside the model's states, by running it through the engine on Meta.
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "models/model.h"
#include "zero/core/engine.h"

namespace zero {

struct ActivationWork : KeptOptions {
  std::int64_t batch = 1;  // sequences of a micro-batch
  std::int64_t seq_len = 1;
  at::ScalarType compute = at::kBFloat16;
  std::int64_t logits_bytes = 0;   // of one chunk; 0: the default of the CPU
  bool masked_targets = false;     // some targets are not trained
  bool fuse_accumulation = false;  // as EngineOptions, and groups do (ParameterGroup::fuses_accumulation)
  bool on_device = false;          // a GPU computes, by LibTorch's fused attention
  bool packed = false;             // rows hold several documents

  auto operator<=>(const ActivationWork&) const = default;
};

/// Bytes. The parts of the peak are those alive at its moment.
struct ActivationBytes {
  std::int64_t batch = 0;           // ids, targets and what tells documents apart
  std::int64_t at_rest = 0;         // tables that stay from step to step
  std::int64_t kept = 0;            // alive between forward and backward
  std::int64_t activations = 0;     // part of the peak, with at_rest
  std::int64_t logits = 0;          // part of the peak: of the head's chunks of tokens
  std::int64_t unit_gradients = 0;  // part of the peak: gradients of leaves that have not been packed yet
  std::int64_t peak() const { return activations + logits + unit_gradients; }
};

/// `model` as it will be trained: frozen or not, with its adapters. Its parameters have no tensors afterwards.
ActivationBytes plan_activations(const Model& model, const ActivationWork& work);

}  // namespace zero

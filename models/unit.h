#pragma once
// Unit: one link of the chain that a model is (embedding, decoder blocks, head). LibTorch only: a unit knows nothing of
// ranks, shards or stages, and the engine nothing of what a unit computes.
//
// At stage 3 the memory of its parameters is there between the unit's unshard and reshard alone.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/parameter_unit.h"

namespace zero {

/// A low-rank adapter on rows [begin, begin + rows) of one of the unit's parameters. Its tensors are parameters of the
/// unit too, by index; magnitude is -1 where there is none.
struct Adapter {
  int parameter = 0;
  std::int64_t begin = 0;
  int a = 0, b = 0, magnitude = -1;
  double scale = 1.0;
  double dropout = 0.0;
  std::uint64_t seed = 0;  // of this module
};

/// What a batch on Meta stands for. It has sizes and no numbers, where those would decide what a pass holds.
struct MetaBatch {
  at::DeviceType device = at::kCPU;  // whose operations are meant
  bool ignores_targets = false;      // some targets are not trained
};

/// The input of one micro-batch. B sequences of T tokens.
struct Batch {
  at::Tensor ids;      // [B, T] int64
  at::Tensor targets;  // [B, T] int64; ignored_target where nothing is trained. Undefined when only logits are wanted.
  at::Tensor positions;  // [B, T] int64 position of each token in its document; undefined: 0..T-1
  at::Tensor documents;  // [B, T] int32 document number inside the row, below T, -1 for padding; attention stays
                         // inside a document. Undefined: each row is one document, and ends at its highest position.
  // What attention on a GPU needs of the documents, made once for all layers (models/nn/device_batch.h); else
  // undefined.
  at::Tensor spans = {};  // [spans + 1] int32: first token of each document among the B T tokens of all rows, and B T
  std::int64_t longest_span = 0;
  at::Tensor bias = {};  // [B, 1, T, T]: 0 where a token attends, else -inf
  MetaBatch meta = {};
};
inline constexpr std::int64_t ignored_target = -100;

class KvCache;

/// What one pass through the chain carries beside the activations.
struct ForwardContext {
  const Batch* batch = nullptr;
  KvCache* cache = nullptr;          // generation only
  bool training = false;             // dropout is drawn
  std::uint64_t seed = 0;            // (run's seed, step) mixed: each unit and sample derives its own draws from it
  std::int64_t first_sample = 0;     // global number of the batch's first sequence
  bool recompute_attention = false;  // blocks keep nothing of their attention half, and run it again in backward
  bool keep_inputs = false;          // what norms and activations give is kept for backward, not computed again
  std::int64_t logits_bytes = 0;     // of one chunk of the head's tokens, at most; 0: what the device is best at
  double gradient_scale = 1;         // what the gradient of the loss will be
};

class Unit : public ParameterUnit {
 public:
  std::vector<Adapter>& adapters() { return adapters_; }
  const std::vector<Adapter>& adapters() const { return adapters_; }

  /// The first unit gets an undefined x and reads context.batch->ids. Blocks map [B, T, hidden] to the same shape. The
  /// last unit returns the sum over trained tokens of the cross-entropy, a scalar in fp32 (fp64 when computing in
  /// fp64).
  virtual at::Tensor forward(const at::Tensor& x, const ForwardContext& context) = 0;

  /// Whether the backward pass reads the unit's own weights. A lookup does not: its weights then stay away in backward.
  virtual bool backward_reads_weights() const { return true; }

  /// Gives up what is kept from pass to pass beside parameters (tables), so that the next pass makes it anew.
  virtual void drop_tables() {}

 protected:
  using ParameterUnit::ParameterUnit;
  std::vector<Adapter> adapters_;
};

}  // namespace zero

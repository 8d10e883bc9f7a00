#pragma once
// Unit: one link of a model's chain (embedding, decoder blocks, head). A unit knows nothing about shards or stages, and
// the engine knows nothing about a unit's computation. A unit does know the ranks that hold other tokens, or other
// slices of its weights.
//
// At stage 3 the memory of a unit's parameters exists only between the unit's unshard and reshard.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/parameter_unit.h"

namespace zero {

/// A low-rank adapter on rows [begin, begin + rows) of one of the unit's parameters. Its tensors are also parameters of
/// the unit, given by index. `magnitude` is -1 if there is none.
struct Adapter {
  int parameter = 0;
  std::int64_t begin = 0;
  int a = 0, b = 0, magnitude = -1;
  double scale = 1.0;
  double dropout = 0.0;
  std::uint64_t seed = 0;  // of this module
};

/// Facts about a batch on the meta device, which has no data, for decisions that depend on data.
struct MetaBatch {
  at::DeviceType device = at::kCPU;  // the device whose memory is measured
  bool ignores_targets = false;      // some targets are not trained
};

/// The input of one micro-batch: B sequences of T tokens.
struct Batch {
  at::Tensor ids;        // [B, T] int64
  at::Tensor targets;    // [B, T] int64; ignored_target if nothing is trained. Undefined if only logits are wanted.
  at::Tensor positions;  // [B, T] int64 position of each token in its document; undefined: 0..T-1
  at::Tensor documents;  // [B, T] int32 document number inside the row, below T; -1 for padding; trunk_of(d) for a
                         // trunk. Attention stays inside a document and its trunk. Undefined: each row is one
                         // document, and ends at its highest position.
  // The documents in the forms that GPU attention needs, made once for all layers (models/nn/device_batch.h). Undefined
  // on a CPU.
  at::Tensor spans = {};  // [spans + 1] int32: each document's first token among all B T tokens, and then B T
  std::int64_t longest_span = 0;
  at::Tensor bias = {};  // [B, 1, T, T]: 0 if a token attends, otherwise -inf
  MetaBatch meta = {};
  // Only the loss reads these; units never do.
  at::Tensor token_weights = {};                 // [B, T] fp32, of the targets; undefined: all 1
  at::Tensor row_weights = {};                   // [B] fp32; undefined: all 1
  std::map<std::string, at::Tensor> named = {};  // fp32: [B, k], or [B, T] for values of tokens
};
inline constexpr std::int64_t ignored_target = -100;

/// The number in Batch::documents of a trunk: tokens with which both document d and document d + 1 begin. A row holds
/// them once, before the documents, whose positions go on from the trunk's. Attention windows count a row's tokens, so
/// a row with a trunk must not be longer than a window.
constexpr std::int32_t trunk_of(std::int32_t d) { return -2 - d; }
constexpr bool is_trunk(std::int32_t number) { return number < -1; }

/// Some of a rank's tokens, if a computation runs on tiles of tokens.
struct TokenTile {
  std::int64_t first = 0;       // index of the tile's first token among the rank's tokens
  std::int64_t row_length = 0;  // of the rows that the tokens come from; 0: not a tile but all tokens
};

class Communicator;
class KvCache;
class Loss;
class LossTerms;

/// The inputs of one pass through the chain besides the activations.
struct ForwardContext {
  const Batch* batch = nullptr;
  KvCache* cache = nullptr;       // generation only
  bool training = false;          // draw dropout
  std::uint64_t seed = 0;         // the run's seed mixed with the step; each unit and sample derives its draws from it
  std::int64_t first_sample = 0;  // global number of the batch's first sequence
  bool recompute_attention = false;  // blocks save nothing of their attention half and run it again in backward
  bool keep_inputs = false;          // keep outputs of norms and activations for backward instead of recomputing them
  std::int64_t mlp_tokens = 0;  // MLPs process this many tokens at a time and run each tile again in backward; 0: all
  bool only_gradient = false;   // backward runs a block again without reading the values of its result
  TokenTile tile = {};
  std::int64_t logits_bytes = 0;  // most bytes of logits in one chunk of the head; 0: the device's default
  double gradient_scale = 1;      // the expected gradient of the loss
  const Loss* loss = nullptr;     // turns the last unit's output into the loss; null: cross-entropy
  LossTerms* terms = nullptr;  // receives terms that units add to the loss; null: terms are dropped. ChainPass sets its
                               // own.
  Communicator* context_ranks = nullptr;  // hold the batch's other tokens; null: none. ChainPass sets its own.
  Communicator* tensor_ranks = nullptr;   // hold the other slices of weights; null: weights are not split. ChainPass
                                          // sets its own.
};

class Unit : public ParameterUnit {
 public:
  std::vector<Adapter>& adapters() { return adapters_; }
  const std::vector<Adapter>& adapters() const { return adapters_; }

  /// The first unit receives an undefined x and reads context.batch->ids. Blocks map [B, T, hidden] to the same shape,
  /// or the rank's own tokens [1, own, hidden] if context_ranks or tensor_ranks divide them
  /// (models/parallel/token_split.h). The last unit returns the batch's context.loss as a scalar in fp32 (fp64 for
  /// fp64), summed and not averaged. Any unit may add terms to the loss (models/loss_terms.h).
  virtual at::Tensor forward(const at::Tensor& x, const ForwardContext& context) = 0;

  /// True if the backward pass reads the unit's own weights. A lookup does not, so its weights stay resharded in
  /// backward.
  virtual bool backward_reads_weights() const { return true; }

  /// Frees tables that are kept between passes. The next pass computes them again.
  virtual void drop_tables() {}

 protected:
  using ParameterUnit::ParameterUnit;
  std::vector<Adapter> adapters_;
};

}  // namespace zero

#pragma once
// Loss: what the last unit's output becomes. The head computes logits by chunks of tokens and hands them over; a loss
// turns each chunk into its part of the value and, in place, into its gradient.
//
// A loss is a constant that all ranks and passes share: what belongs to one batch passes through its functions.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/parallel/vocabulary_slice.h"
#include "models/unit.h"

namespace zero {

/// The counts of a row of the data, known without building it.
struct RowCounts {
  std::int64_t trained_tokens = 0;
  std::int64_t tokens = 0;  // without filling
};

/// n of a batch's tokens, in their order. Tokens that are not trained are left out, or have a negative target (on a
/// GPU, where nobody waits for a count).
struct LossChunk {
  const Batch& batch;
  at::Tensor targets;       // [n] int64
  at::Tensor places;        // places of the trained tokens among the B T of the batch; undefined: all tokens are there
  std::int64_t begin = 0;   // the first of the n among these
  at::Tensor weights = {};  // [B, T], of a verdict; undefined in the first look
  VocabularySlice vocabulary = {};  // if it divides, the logits are those of a part of the vocabulary

  /// The entries [n] of a tensor [B, T], or [n, k] of [B, T, k], that belong to these tokens.
  at::Tensor select(const at::Tensor& of_tokens) const;
};

/// The part of the loss that a chunk, or a batch, adds.
struct LossPart {
  at::Tensor value;    // []: its part of the loss; a loss that looks twice gives [n], a value of each token
  at::Tensor figures;  // [k] in the order of figures(); undefined if there are none
};

/// The result of a loss that looks twice, for all tokens of a batch.
struct LossVerdict {
  at::Tensor value;    // []: the loss
  at::Tensor weights;  // [B, T]: by which the gradients of the tokens' values are multiplied
  at::Tensor figures = {};
};

class Loss {
 public:
  virtual ~Loss() = default;

  virtual std::string name() const = 0;

  /// Names of Batch::named that it reads. A run whose data lack one is refused.
  virtual std::vector<std::string> needs() const { return {}; }

  /// The row's part of the step's denominator: the number of its trained tokens, its sequences or its pairs. The sum
  /// over all rows of a step, on all ranks, is known before the first backward. Weights are no part of it.
  virtual double count(const RowCounts& row) const = 0;

  /// The names of what it reports beside its value: sums over a batch. The loop adds them over micro-batches and
  /// ranks, and divides by the denominator.
  virtual std::vector<std::string> figures() const { return {}; }

  /// True if of_chunk() also takes logits of a part of the vocabulary. The token losses do (token_losses.h), so a loss
  /// that is made of them does.
  virtual bool takes_slices() const { return false; }

  /// The part of a chunk, from logits [n, vocabulary] in the type of computation. Its value is that of the whole
  /// vocabulary, alike on all ranks of the tensor axis. With `scale`, [] in fp32 (fp64 in fp64), it leaves in their
  /// place scale * d value / d logits, each row multiplied by the token's entry in chunk.weights if that is defined.
  /// Sums of rows must not depend on the number of threads (models/undivided.h). It also runs on Meta, where nothing
  /// has a value.
  virtual LossPart of_chunk(at::Tensor& logits, const LossChunk& chunk, const at::Tensor* scale) const = 0;

  /// True if a token's gradient depends on other chunks. The head then shows every chunk without scale first, asks for
  /// a verdict, and computes and shows them again with scale, if gradients are wanted. The logits of a batch that fits
  /// into one chunk are kept.
  virtual bool looks_twice() const { return false; }
  /// For a batch with at least one row, from the values [B, T] of all tokens, 0 where none is trained. Only for a loss
  /// that looks twice.
  virtual LossVerdict judge(const at::Tensor& values, const Batch& batch) const;
};

/// The loss of a pass: context.loss, or the cross-entropy.
const Loss& loss_of(const ForwardContext& context);

/// A tensor of the batch by name. Throws Error if the batch has none.
const at::Tensor& named_tensor(const Batch& batch, const std::string& name);

/// token_weights x row_weights of a chunk, [n]; undefined: all 1.
at::Tensor weights_of(const LossChunk& chunk);

}  // namespace zero

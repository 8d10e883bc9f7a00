#pragma once
// Loss: turns the last unit's output into the loss. The head computes logits for one chunk of tokens at a time. The
// loss computes each chunk's share of the value, and overwrites the chunk's logits with their gradient.
//
// A loss has no state: all ranks and passes share it, and everything about a batch is an argument of its functions.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/parallel/vocabulary_slice.h"
#include "models/unit.h"

namespace zero {

/// The token counts of a row of data, known without building the row.
struct RowCounts {
  std::int64_t trained_tokens = 0;
  std::int64_t tokens = 0;         // without padding
  std::int64_t first_trained = 0;  // trained tokens of the first document
};

/// n tokens of a batch, in order. Tokens that are not trained are omitted. On a GPU they have a negative target
/// instead, since counting them would make the host wait.
struct LossChunk {
  const Batch& batch;
  at::Tensor targets;               // [n] int64
  at::Tensor places;                // the trained tokens' indices among the batch's B T; undefined: all tokens
  std::int64_t begin = 0;           // index of the first of the n in `places`
  at::Tensor weights = {};          // [B, T], from LossVerdict; undefined in the first pass
  VocabularySlice vocabulary = {};  // if divided, the logits cover only part of the vocabulary

  /// Selects these tokens' entries: [n] from a tensor [B, T], or [n, k] from [B, T, k].
  at::Tensor select(const at::Tensor& of_tokens) const;
};

/// The contribution of a chunk or a batch to the loss.
struct LossPart {
  at::Tensor value;    // [], or [n] with one value per token for a loss that looks twice
  at::Tensor figures;  // [k] metrics, in the order of figures(); undefined if there are none
};

/// The result of a loss that needs two passes (looks_twice), for all tokens of a batch.
struct LossVerdict {
  at::Tensor value;    // []: the loss
  at::Tensor weights;  // [B, T]: multiplies the gradient of each token's value
  at::Tensor figures = {};
};

/// Metrics by name.
using LossMeans = std::map<std::string, double>;

class Loss {
 public:
  virtual ~Loss() = default;

  virtual std::string name() const = 0;

  /// The names in Batch::named that the loss reads. A run whose data lack one fails with an error.
  virtual std::vector<std::string> needs() const { return {}; }

  /// The row's share of the step's denominator: the number of its trained tokens, sequences or pairs, whatever their
  /// weights. The sum over all rows of a step, on all ranks, is known before the first backward.
  virtual double count(const RowCounts& row) const = 0;

  /// True if the loss also takes a mean over the trained tokens of all first documents of a step. Its batches then have
  /// a token_share().
  virtual bool averages_tokens() const { return false; }

  /// The names of the metrics that the loss reports besides its value. Each is a sum over a batch. The training loop
  /// adds them over micro-batches and ranks, and divides by the denominator.
  virtual std::vector<std::string> figures() const { return {}; }
  /// Turns the means of figures() over a step's denominator into the metrics that are recorded.
  virtual void conclude(LossMeans& means) const {}

  /// True if of_chunk() also accepts logits of part of the vocabulary. Token losses (token_losses.h) do, and so does a
  /// loss that is computed from them.
  virtual bool takes_slices() const { return false; }

  /// Computes a chunk's contribution from logits [n, vocabulary] in the compute type. The value is for the full
  /// vocabulary, the same on all ranks of the tensor axis. If `scale` is given ([] in fp32, or fp64 for fp64),
  /// overwrites the logits with scale * d value / d logits. Each row is then also multiplied by the token's entry in
  /// chunk.weights, if that tensor is defined. Sums of rows must not depend on the number of threads
  /// (models/undivided.h). The function must also run on the meta device, where tensors have no values.
  virtual LossPart of_chunk(at::Tensor& logits, const LossChunk& chunk, const at::Tensor* scale) const = 0;

  /// True if a token's gradient depends on other chunks. The head then first passes every chunk without a scale and
  /// calls judge(). If gradients are wanted, it computes every chunk again and passes it with a scale. If a batch fits
  /// into one chunk, its logits are kept instead.
  virtual bool looks_twice() const { return false; }
  /// Computes the loss of a batch of at least one row from the values [B, T] of all tokens. The values of untrained
  /// tokens are 0. Only a loss for which looks_twice() is true implements it.
  virtual LossVerdict judge(const at::Tensor& values, const Batch& batch) const;
};

/// Appends the metrics of a step or a validation, after conclude(). `means`: those of the loss and its terms over the
/// denominator, in order.
void append_figures(std::vector<std::pair<std::string, double>>& metrics, const Loss& loss,
                    const std::vector<std::pair<std::string, double>>& means, const std::string& prefix = "");

/// The loss of a pass: context.loss, or cross-entropy if that is null.
const Loss& loss_of(const ForwardContext& context);

/// A tensor of the batch by name. Throws Error if the batch has none.
const at::Tensor& named_tensor(const Batch& batch, const std::string& name);

/// The named tensor [B, 1] of losses that average tokens: the step's denominator, divided by its number of trained
/// tokens in first documents. The sum of share x -log p over these tokens, divided by the
/// denominator, is then their mean.
inline constexpr const char* token_share_name = "token_share";
/// The token share as [B].
at::Tensor token_share(const Batch& batch);

/// token_weights x row_weights of a chunk, [n]. Undefined if all are 1.
at::Tensor weights_of(const LossChunk& chunk);

}  // namespace zero

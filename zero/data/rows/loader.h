#pragma once
// Loaders turn the rows of a source into one rank's batches. They never communicate.
#include <cstdint>
#include <memory>
#include <vector>

#include "models/loss/cross_entropy_loss.h"
#include "models/unit.h"
#include "zero/data/rows/row_source.h"
#include "zero/data/rows/sample_order.h"

namespace zero {

/// The allowed lengths of a batch: the longest row's length, rounded up to a multiple, but at most `most`. A row longer
/// than `most` keeps its own length. This limits the number of lengths on a device that compiles kernels per length.
struct BatchLength {
  std::int64_t multiple = 1;
  std::int64_t most = 0;

  std::int64_t of(std::int64_t longest) const;
};

/// The sums over the rows of a step, on all ranks, by which its loss is divided.
struct Denominators {
  double loss = 0;                 // Loss::count()
  std::int64_t first_trained = 0;  // trained tokens of first documents
};

/// Makes one batch [B, T] from rows; T is the longest row's length, rounded by `BatchLength`. Shorter rows are padded
/// at the end: id 0, ignored_target, position 0, document -1. No rows give [0, empty_length].
///
/// Tensors that are not needed are undefined. `positions` is not needed if every row is unpadded and one document,
/// `documents` if every row is one document, weights if all are 1. Padding follows the tokens, so causal attention
/// never sees it. Padding has weight 0, and 0 in named tensors.
Batch make_batch(const std::vector<Row>& rows, std::int64_t empty_length = 1, const BatchLength& length = {});

struct LoaderOptions {
  int rank = 0;
  int ranks = 1;
  std::int64_t local_batch_size = 1;   // rows of one rank's micro-batch
  std::int64_t global_batch_size = 1;  // rows of one step, a multiple of ranks x local_batch_size
  BatchLength length = {};
  const Loss* loss = &cross_entropy_loss();  // computes the denominator; must outlive the loader
};

/// The training batches. Micro-batch a of rank r (of N) takes local_batch_size of the step's rows, starting at row (a*N
/// + r) * local_batch_size. Not thread-safe.
class Loader {
 public:
  /// `order` must cover the rows of `source`, in steps of global_batch_size. Throws InputError if the sizes do not
  /// divide evenly, or if the rows lack a tensor that the loss needs.
  Loader(std::shared_ptr<const RowSource> source, SampleOrder order, LoaderOptions options);

  /// Micro-batches per step on each rank.
  std::int64_t micro_batches() const;

  /// Steps count from 0.
  Batch batch(std::int64_t step, std::int64_t micro_batch);

  /// Returns the row numbers of any rank's micro-batch.
  std::vector<std::int64_t> rows(std::int64_t step, std::int64_t micro_batch, int rank);

  /// Returns the denominator of the step's loss, over all ranks and micro-batches.
  double denominator(std::int64_t step);

  /// Returns the number of trained tokens in the step's global batch, over all ranks and micro-batches.
  std::int64_t trained_tokens(std::int64_t step);

  /// Returns the number of input tokens in the step's global batch, without padding.
  std::int64_t input_tokens(std::int64_t step);

  /// Returns the index of the batch's first row among all rows of the run. The index of a row does not depend on the
  /// number of ranks.
  std::int64_t first_sample(std::int64_t step, std::int64_t micro_batch) const;

  const RowSource& source() const { return *source_; }
  const Loss& loss() const { return *options_.loss; }
  const SampleOrder& order() const { return order_; }

 private:
  const std::vector<std::int64_t>& rows_of(std::int64_t step);
  Denominators denominators(std::int64_t step);

  std::shared_ptr<const RowSource> source_;
  SampleOrder order_;
  LoaderOptions options_;
  std::int64_t step_ = -1;  // step of rows_
  std::vector<std::int64_t> rows_;
};

/// The validation batches: every row once, in order, spread evenly over the ranks. In the last micro-batch, a rank
/// without a row gets an empty batch.
class ValidationLoader {
 public:
  ValidationLoader(std::shared_ptr<const RowSource> source, int rank, int ranks, std::int64_t local_batch_size,
                   BatchLength length = {}, const Loss& loss = cross_entropy_loss());

  /// Equal on all ranks.
  std::int64_t micro_batches() const;
  Batch batch(std::int64_t micro_batch) const;
  /// The number of the batch's first row.
  std::int64_t first_row(std::int64_t micro_batch) const { return rows_of(micro_batch).begin; }
  /// The number of rows in all earlier micro-batches, over all ranks.
  std::int64_t rows_before(std::int64_t micro_batch) const;

  const RowSource& source() const { return *source_; }
  const Loss& loss() const { return loss_; }
  /// The loss's denominator over all rows and ranks.
  double denominator() const { return denominators_.loss; }
  /// Over all rows and ranks.
  std::int64_t trained_tokens() const { return trained_tokens_; }

 private:
  struct Range {
    std::int64_t begin, end;
  };
  Range rows_of(std::int64_t micro_batch) const;

  std::shared_ptr<const RowSource> source_;
  int rank_;
  int ranks_;
  std::int64_t local_batch_size_;
  BatchLength length_;
  const Loss& loss_;
  Denominators denominators_;
  std::int64_t trained_tokens_ = 0;
};

}  // namespace zero

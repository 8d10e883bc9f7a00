#pragma once
// Loaders: the rows of a source as the batches of one rank. They never communicate.
#include <cstdint>
#include <memory>
#include <vector>

#include "models/loss/cross_entropy_loss.h"
#include "models/unit.h"
#include "zero/data/rows/row_source.h"
#include "zero/data/rows/sample_order.h"

namespace zero {

/// The lengths that batches may have: the longest row's, rounded up to a multiple, though not beyond `most` (where a
/// row itself is longer, that row's). A device whose kernels are made anew for each length then sees few.
struct BatchLength {
  std::int64_t multiple = 1;
  std::int64_t most = 0;

  std::int64_t of(std::int64_t longest) const;
};

/// Rows as one batch [B, T], T the length for the longest of them. Shorter rows are filled up at their end with id 0,
/// ignored_target, position 0, document -1. positions stay undefined where all rows are whole and of one document,
/// documents where each row is one: causal attention never looks from a token at the filling behind it. Weights stay
/// undefined where all are 1; filling has weight 0, and 0 in named tensors. Without rows: [0, empty_length], and
/// nothing is named.
Batch make_batch(const std::vector<Row>& rows, std::int64_t empty_length = 1, const BatchLength& length = {});

struct LoaderOptions {
  int rank = 0;
  int ranks = 1;
  std::int64_t local_batch_size = 1;   // rows in one micro-batch of one rank
  std::int64_t global_batch_size = 1;  // rows of one step: a multiple of ranks x local_batch_size
  BatchLength length = {};
  const Loss* loss = &cross_entropy_loss();  // counts the denominator; outlives the loader
};

/// The training batches. Micro-batch a of rank r (N ranks) takes the step's rows from (a*N + r) * local_batch_size on.
/// For one thread.
class Loader {
 public:
  /// `order` must be over the rows of `source` and steps of global_batch_size. InputError when the sizes do not divide, or
  /// the rows lack a tensor that the loss needs.
  Loader(std::shared_ptr<const RowSource> source, SampleOrder order, LoaderOptions options);

  /// Micro-batches per step on each rank.
  std::int64_t micro_batches() const;

  /// Steps count from 0.
  Batch batch(std::int64_t step, std::int64_t micro_batch);

  /// The rows of the source in any rank's micro-batch.
  std::vector<std::int64_t> rows(std::int64_t step, std::int64_t micro_batch, int rank);

  /// What the loss of the step is divided by, over all ranks and micro-batches.
  double denominator(std::int64_t step);

  /// Trained tokens of the step's whole global batch, all ranks and micro-batches.
  std::int64_t trained_tokens(std::int64_t step);

  /// Input tokens of it, without filling.
  std::int64_t input_tokens(std::int64_t step);

  /// The number that the batch's first row has among all rows ever trained; the same row has the same number for every
  /// number of ranks.
  std::int64_t first_sample(std::int64_t step, std::int64_t micro_batch) const;

  const RowSource& source() const { return *source_; }
  const Loss& loss() const { return *options_.loss; }
  const SampleOrder& order() const { return order_; }

 private:
  const std::vector<std::int64_t>& rows_of(std::int64_t step);

  std::shared_ptr<const RowSource> source_;
  SampleOrder order_;
  LoaderOptions options_;
  std::int64_t step_ = -1;  // the step that rows_ belongs to
  std::vector<std::int64_t> rows_;
};

/// The validation batches: every row once, in order, spread evenly over the ranks. A rank without a row in the last
/// micro-batch gets an empty one.
class ValidationLoader {
 public:
  ValidationLoader(std::shared_ptr<const RowSource> source, int rank, int ranks, std::int64_t local_batch_size,
                   BatchLength length = {}, const Loss& loss = cross_entropy_loss());

  /// The same on every rank.
  std::int64_t micro_batches() const;
  Batch batch(std::int64_t micro_batch) const;

  const Loss& loss() const { return loss_; }
  /// What the loss of all rows is divided by.
  double denominator() const { return denominator_; }
  /// Of all rows, over all ranks.
  std::int64_t trained_tokens() const { return trained_tokens_; }

 private:
  std::shared_ptr<const RowSource> source_;
  int rank_;
  int ranks_;
  std::int64_t local_batch_size_;
  BatchLength length_;
  const Loss& loss_;
  double denominator_ = 0;
  std::int64_t trained_tokens_ = 0;
};

}  // namespace zero

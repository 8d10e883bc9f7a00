#pragma once
// Adafactor's passes over a matrix in host memory, vectorized, for fp32 masters.
#include <cstdint>

#include "zero/optim/kernels/update_span.h"

namespace zero {

/// Rows of one matrix that are adjacent in a span. The loops read and write the span's elements from `offset` on.
struct MatrixRows {
  std::int64_t offset, rows, cols;
};

/// The inverse roots of the second moments: of an element in row r and column c it is the smaller of `limit` and the
/// product of its row's and its column's.
struct InverseRoots {
  const float *of_rows, *of_cols;
  float limit;
};

/// The loops give the same bits for any number of threads and any kind of processor.
struct AdafactorLoops {
  /// Returns the sum of the squares of the master weights.
  double (*sum_of_squares)(const UpdateSpan& span);
  /// Adds the squares of scaled gradients to the sums of rows and of columns.
  void (*add_squares)(const UpdateSpan& span, double gradient_scale, const MatrixRows& part, double* by_row,
                      double* by_col);
  /// Returns the sum of the squares of steps. A step is a scaled gradient times its inverse root.
  double (*sum_of_steps)(const UpdateSpan& span, double gradient_scale, const MatrixRows& part,
                         const InverseRoots& roots);
  /// Master = keep * master - rate * step. Writes the weights too.
  void (*take_steps)(const UpdateSpan& span, double gradient_scale, const MatrixRows& part, const InverseRoots& roots,
                     double keep, double rate);
};

/// Null if there are none for the types of the span.
const AdafactorLoops* adafactor_loops(const UpdateSpan& span);

}  // namespace zero

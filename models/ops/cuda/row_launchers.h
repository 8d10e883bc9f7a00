#pragma once
// Kernels over rows in GPU memory: norm, SwiGLU, cross-entropy, dropout. They compute in fp32 and round once. They use
// no float atomics, so they give the same bits every time. Includes neither LibTorch nor CUDA's headers; a stream is a
// cudaStream_t. A failed launch throws std::runtime_error.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

struct Stream {
  void* handle = nullptr;
  Number type = Number::fp32;  // of all rows of the call
};

/// y = weight * x * rstd with rstd [rows] = 1 / sqrt(mean(x^2) + eps). If `again` is set, rstd is read instead of
/// computed.
struct RmsNormJob {
  const void* x;
  const void* weight;
  void* y;
  float* rstd;
  std::int64_t rows;
  int hidden;
  float eps;
  bool again;
};
void rms_norm(const RmsNormJob& job, Stream stream);

/// dx = rstd * (g - n * mean(g * n)) with g = dy * weight, n = x * rstd. If `beside` [rows, hidden] is not null, it is
/// added before rounding. If partial_dweight [parts, hidden] is not null, it receives one sum of dy * n for each of
/// `parts` runs of rows.
struct RmsNormBackwardJob {
  const void* dy;
  const void* x;
  const void* weight;
  const float* rstd;
  const void* beside;
  void* dx;
  float* partial_dweight;
  int parts;
  std::int64_t rows;
  int hidden;
};
void rms_norm_backward(const RmsNormBackwardJob& job, Stream stream);
/// The longest row that fits into a block's 48 KiB of shared memory, next to a few sums.
inline constexpr int max_hidden = 12160;

/// y [rows, inner] = silu(gate) * up for gate_up [rows, 2 inner]. If `dy` is given, computes dgate_up instead.
struct SwigluJob {
  const void* gate_up;
  const void* dy;
  void* out;
  std::int64_t rows;
  int inner;
};
void swiglu(const SwigluJob& job, Stream stream);

/// Computes lse and loss [rows] of logits [rows, vocabulary]. Rows with a negative target do not count. A target
/// outside the vocabulary gives NaN. If a scale is given, the logits become their gradient in the same pass. If
/// `backward` is set, only the gradient is computed, from lse.
struct CrossEntropyJob {
  void* logits;
  const std::int64_t* targets;
  float* lse;
  float* losses;
  std::int64_t rows;
  int vocabulary;
  const float* scale;           // logits <- scale * (softmax - onehot); null: logits do not change
  std::int64_t scale_step = 0;  // distance between the scales of two rows; 0: one scale for all
};
void cross_entropy(const CrossEntropyJob& job, Stream stream);
void cross_entropy_backward(const CrossEntropyJob& job, Stream stream);

/// mask [rows, columns] <- 0 if the draw is below the threshold, otherwise `kept`. The draws come from philox.h. A
/// row's stream is (sample << 32 | place), with sample = first_sample + row / sequence and place = row % sequence.
struct DropoutMaskJob {
  void* mask;
  std::int64_t rows;
  int columns;
  std::int64_t sequence;
  std::int64_t first_sample;
  std::int64_t first_row, first_column;
  std::uint64_t seed;
  std::uint32_t threshold;
  float kept;
};
void dropout_mask(const DropoutMaskJob& job, Stream stream);

}  // namespace zero::cuda

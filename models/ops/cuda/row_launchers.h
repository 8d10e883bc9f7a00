#pragma once
// Kernels over rows in GPU memory: norm, SwiGLU, cross-entropy, dropout. Everything inside is fp32, rounded
// once. No float atomics: the same bits every time. Sees neither LibTorch nor CUDA's headers; a stream is a
// cudaStream_t. A launch that fails throws std::runtime_error.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

struct Stream {
  void* handle = nullptr;
  Number type = Number::fp32;  // of all rows of the call
};

/// y = weight * x * rstd with rstd [rows] = 1 / sqrt(mean(x^2) + eps); again: rstd is read instead.
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

/// dx = rstd * (g - n * mean(g * n)), g = dy * weight, n = x * rstd, and what is `beside` it [rows, hidden] (null:
/// nothing) added before it is rounded; partial_dweight [parts, hidden] (null: not wanted)
/// gets one sum of dy * n for each of `parts` runs of rows.
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
/// Rows up to this long fit into the 48 KiB of shared memory that a block has, beside a few sums.
inline constexpr int max_hidden = 12160;

/// y [rows, inner] = silu(gate) * up of gate_up [rows, 2 inner]; with dy: dgate_up instead.
struct SwigluJob {
  const void* gate_up;
  const void* dy;
  void* out;
  std::int64_t rows;
  int inner;
};
void swiglu(const SwigluJob& job, Stream stream);

/// lse and loss [rows] of logits [rows, vocabulary]; a negative target counts nothing, one beyond the vocabulary gives
/// NaN. With a scale the logits become their gradient in the same pass; `backward` does that alone, from lse.
struct CrossEntropyJob {
  void* logits;
  const std::int64_t* targets;
  float* lse;
  float* losses;
  std::int64_t rows;
  int vocabulary;
  const float* scale;  // []: logits <- scale * (softmax - onehot); null: they stay
};
void cross_entropy(const CrossEntropyJob& job, Stream stream);
void cross_entropy_backward(const CrossEntropyJob& job, Stream stream);

/// mask [rows, columns] <- 0 where the draw is below the threshold, else `kept`: the draws of philox.h, whose stream is
/// the row's (sample << 32 | place), sample = first_sample + row / sequence, place = row % sequence.
struct DropoutMaskJob {
  void* mask;
  std::int64_t rows;
  int columns;
  std::int64_t sequence;
  std::int64_t first_sample;
  std::uint64_t seed;
  std::uint32_t threshold;
  float kept;
};
void dropout_mask(const DropoutMaskJob& job, Stream stream);

}  // namespace zero::cuda

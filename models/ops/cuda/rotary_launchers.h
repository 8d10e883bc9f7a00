#pragma once
// Kernels that rotate the heads of queries and keys in GPU memory by their tokens' positions. Everything inside is
// fp32, rounded once. Includes neither LibTorch nor CUDA's headers. A failed launch throws std::runtime_error.
#include <cstdint>

#include "models/ops/cuda/row_launchers.h"

namespace zero::cuda {

/// The angles of tokens. Dimension i of a head rotates with i + head_dim/2, by row positions[token] of the tables. If
/// positions is null, it is row token modulo seq.
struct Turning {
  const float* cos;  // [positions, head_dim / 2]
  const float* sin;
  const std::int64_t* positions;  // [tokens]
  std::int64_t tokens;            // rows of qkv
  int seq;                        // tokens of a sequence
  int heads;                      // of q and k together: those that rotate
  int head_dim;
  int width;  // elements of a token's qkv, the heads of q first, then those of k and v
};

/// Rotates q and k of qkv [tokens, width] in place; v stays.
void rotate(void* qkv, const Turning& turning, Stream stream);

/// The gradient of some heads. Element d of head h of token t of sequence b is
/// at[b * batch + t * token + h * head + d].
struct HeadsGradient {
  const void* at;
  std::int64_t batch, token, head;
  int heads;
};

/// dqkv [tokens, width] <- the gradients of the rotated q and k, rotated back, and of v.
struct PackHeadsJob {
  HeadsGradient q, k, v;
  void* dqkv;
  Turning turning;
};
void pack_heads(const PackHeadsJob& job, Stream stream);

}  // namespace zero::cuda

#pragma once
// Kernels that rotate query and key heads in GPU memory by their tokens' positions. They compute in fp32 and round
// once. Includes neither LibTorch nor CUDA's headers. A failed launch throws std::runtime_error.
#include <cstdint>

#include "models/ops/cuda/row_launchers.h"

namespace zero::cuda {

/// The angles of tokens. Dimension i of a head rotates with dimension i + head_dim/2, by row positions[token] of the
/// tables. If `positions` is null, the row is the token's number modulo seq.
struct Turning {
  const float* cos;  // [positions, head_dim / 2]
  const float* sin;
  const std::int64_t* positions;  // [tokens]
  std::int64_t tokens;            // rows of qkv
  int seq;                        // tokens of a sequence
  int heads;                      // of q and k together, which rotate
  int head_dim;
  int width;  // elements of a token's qkv: first the heads of q, then those of k and v
};

/// Rotates q and k of qkv [tokens, width] in place. v does not change.
void rotate(void* qkv, const Turning& turning, Stream stream);

/// The gradient of q, k or v. Element d of head h of token t of sequence b is at[b * batch + t * token + h * head + d].
struct HeadsGradient {
  const void* at;
  std::int64_t batch, token, head;
  int heads;
};

/// dqkv [tokens, width] <- the gradients of q and k, rotated back, and of v.
struct PackHeadsJob {
  HeadsGradient q, k, v;
  void* dqkv;
  Turning turning;
};
void pack_heads(const PackHeadsJob& job, Stream stream);

}  // namespace zero::cuda

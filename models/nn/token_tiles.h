#pragma once
// Token tiles: a computation of single tokens, run on some of them at a time (tiled MLP: Arctic Long Sequence Training,
// Bekman et al. 2025). Forward keeps only its input. Backward runs each tile again, so that the values inside of one
// tile exist at a time.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace zero {

/// Maps tokens [1, n, width] to the same shape, each by itself. `first`: the number of the first one among the rows of
/// the whole input. Gives the same result every time. Its captures must outlive the backward pass.
using TiledBody = std::function<at::Tensor(const at::Tensor& tile, std::int64_t first)>;

struct TokenTiles {
  std::int64_t tokens = 0;    // of a tile, at most
  bool only_gradient = false;  // nobody reads the result's values, so forward leaves them out
};

/// The body of x [B, T, width], by tiles of its B T tokens. `trainable` are the leaves that the body uses. Their
/// gradients are summed over tiles in fp32 (fp64 in fp64) and rounded once.
at::Tensor by_token_tiles(TiledBody body, const at::Tensor& x, const TokenTiles& tiles,
                          const std::vector<at::Tensor>& trainable);

}  // namespace zero

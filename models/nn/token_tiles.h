#pragma once
// Token tiles: runs a computation that treats each token separately on some tokens at a time (tiled MLP: Arctic Long
// Sequence Training, Bekman et al. 2025). Forward keeps only the input. Backward runs each tile again, so the
// intermediate values of only one tile exist at a time.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace zero {

/// Maps tokens [1, n, width] to the same shape, each token by itself. `first` is the index of the first token among the
/// rows of the whole input. Equal calls must return equal results. The captures must outlive the backward pass.
using TiledBody = std::function<at::Tensor(const at::Tensor& tile, std::int64_t first)>;

struct TokenTiles {
  std::int64_t tokens = 0;     // most tokens in a tile
  bool only_gradient = false;  // the result's values are not read, so forward does not compute them
};

/// Applies the body to x [B, T, width] in tiles of its B T tokens. `trainable` lists the leaves that the body uses.
/// Their gradients are summed over tiles in fp32 (fp64 for fp64) and rounded once.
at::Tensor by_token_tiles(TiledBody body, const at::Tensor& x, const TokenTiles& tiles,
                          const std::vector<at::Tensor>& trainable);

}  // namespace zero

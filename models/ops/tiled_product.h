#pragma once
// Matrix products on AMX tiles (kernels/tile_matrix.h), for tensors.
#include <ATen/core/Tensor.h>

namespace zero {

/// out = a b, or with `add` out += a b, as matrix_product_into(). Returns false, and does nothing, if the tiles do not
/// take this product. They take bf16 factors whose product is bf16 or fp32. They take fp32 factors if LibTorch's
/// setting for oneDNN's fp32 products allows BF16 or TF32 (nn/matmul_setting.h). LibTorch keeps the bf16 products that
/// it multiplies as fast, unless its deterministic algorithms are on. Sizes and strides decide. On tiles, sums are
/// fp32, rounded once, and their bits are the same for any number of threads.
bool tiled_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add);

}  // namespace zero

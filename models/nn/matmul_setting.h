#pragma once
// The arithmetic of fp32 matrix products, and their library on the CPU. By default LibTorch uses MKL. If reduced
// precision is allowed, it uses oneDNN, which is faster on CPUs other than Intel's. On CPUs without matrix units oneDNN
// still computes in fp32.
#include <cstdint>
#include <string>

namespace zero {

/// PyTorch's names (torch.set_float32_matmul_precision). `high`: AMX tiles multiply sums of two bf16 numbers, GPUs
/// multiply in TF32, and other CPUs in fp32. `medium`: CPUs round to bf16, GPUs to TF32.
enum class MatmulPrecision : std::uint8_t { highest, high, medium };

/// Throws Error for other names.
MatmulPrecision matmul_precision_of(const std::string& name);

/// Chooses how fp32 matrices are multiplied, and returns a sentence for the log. For `highest`, and for `high` without
/// AMX, it measures oneDNN's error on processors other than Intel's. It selects oneDNN if that error is fp32's own. The
/// processor alone decides, never a measured time, so a run repeats bit for bit. Also lets oneDNN and ideep cache 64
/// compiled products each, unless ONEDNN_PRIMITIVE_CACHE_CAPACITY or LRU_CACHE_CAPACITY is set. These settings affect
/// the whole process: call this once, at the start, before the first product.
std::string choose_matmul(MatmulPrecision precision = MatmulPrecision::highest);

/// Turns on LibTorch's deterministic algorithms. From then on matrix products have the same bits for any number of
/// threads (models/ops/matrix_product.h), and operations without a deterministic kernel throw. Call this at the start,
/// too.
void choose_deterministic_products();

}  // namespace zero

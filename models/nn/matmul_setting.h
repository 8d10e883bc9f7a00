#pragma once
// The library for fp32 matrix products on the CPU. By default LibTorch uses MKL. If reduced precision is allowed, it
// uses oneDNN, which is faster on CPUs other than Intel's. On CPUs without matrix units oneDNN still computes in fp32.
#include <string>

namespace zero {

/// On processors other than Intel's, measures oneDNN's error and selects oneDNN, for the CPU only, if its error is that
/// of fp32. The processor alone decides, never a measured time, so a run repeats bit for bit. Returns a sentence for
/// the log. Also lets oneDNN and ideep cache 64 compiled products each, unless ONEDNN_PRIMITIVE_CACHE_CAPACITY or
/// LRU_CACHE_CAPACITY is set. These settings affect the whole process: call this once, at the start, before the first
/// product.
std::string choose_fast_matmul();

/// Turns on LibTorch's deterministic algorithms. From then on matrix products have the same bits for any number of
/// threads (models/ops/matrix_product.h), and operations without a deterministic kernel throw. Call this at the start,
/// too.
void choose_deterministic_products();

}  // namespace zero

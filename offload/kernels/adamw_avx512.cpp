#include "offload/kernels/adamw_simd.h"
#include "offload/kernels/lanes_avx512.h"

namespace zero::kernels {

UpdateF32 avx512_f32(Number gradient, Number weights) { return pick<Lanes16, Lane<float>>(gradient, weights); }

}  // namespace zero::kernels

#include "offload/kernels/adamw_simd.h"
#include "offload/kernels/lanes_avx2.h"

namespace zero::kernels {

UpdateF32 avx2_f32(Number gradient, Number weights) { return pick<Lanes8, Lane<float>>(gradient, weights); }

}  // namespace zero::kernels

#pragma once
// The targets for which Highway (github.com/google/highway) compiles CPU kernels: AVX2 and AVX-512 on x86-64, NEON on
// ARM. Include this before any header of Highway's.
//
// A file of kernels is compiled once per target. HWY_DYNAMIC_DISPATCH calls the version for the best target of this
// machine:
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "ROOM/FILE.cpp"    // itself
//   #include <hwy/foreach_target.h>
//   #include "base/simd/lanes.inl"
//   HWY_BEFORE_NAMESPACE(); ... kernels in zero::HWY_NAMESPACE ... HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE ... HWY_EXPORT, and the functions that others call ... #endif
// Put other headers first: headers after foreach_target.h are compiled for every target too. A file without
// foreach_target.h is compiled only for the baseline target.

// No kernel uses AES or carry-less multiplication, since x86-64-v3 does not include them.
#define HWY_DISABLE_PCLMUL_AES
// The kernels hold vectors in arrays, so their length must be known at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
// NEON is the only target for ARM, so nothing is detected at run time. Highway's detection would require AES too.
#if defined(__aarch64__)
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif

#pragma once
// Counts requests to the emulated cuBLASLt, and can make it reject algorithms, for tests. Without the emulation, both
// symbols are null at run time.

extern "C" {

struct EmulatedLtCounts {
  long searches = 0;  // searches for algorithms
  long products = 0;  // launched products, including captured ones
  long slow = 0;      // products that do not use the problem's fastest algorithm
  long split = 0;     // split-k products
};
/// Null on a real GPU.
__attribute__((weak)) const EmulatedLtCounts* zero_emulated_lt_counts();
/// Makes cuBLASLt reject a problem's fastest algorithm for accumulating products. Off by default.
__attribute__((weak)) void zero_emulated_lt_refuse_fastest_sum(bool refuses);

}  // extern "C"

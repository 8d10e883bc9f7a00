#pragma once
// Counts of requests to the emulated cuBLASLt and of its refusals, for tests. A program without it sees null at
// run time.

extern "C" {

struct EmulatedLtCounts {
  long searches = 0;  // searches for algorithms
  long products = 0;  // launched products, captured ones included
  long slow = 0;      // products by another algorithm than the problem's fastest
  long split = 0;     // products that sum in several parts
};
/// Null on a real GPU.
__attribute__((weak)) const EmulatedLtCounts* zero_emulated_lt_counts();
/// True if a problem's fastest algorithm is refused for accumulating products. Off at first.
__attribute__((weak)) void zero_emulated_lt_refuse_fastest_sum(bool refuses);

}  // extern "C"

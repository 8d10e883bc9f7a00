#pragma once
// The requests to the emulated cuBLASLt and its refusals, for tests. The program may lack it, which is known at run
// time.

extern "C" {

struct EmulatedLtCounts {
  long searches = 0;  // for algorithms
  long products = 0;  // launched, those of a capture too
  long slow = 0;      // of these, by another algorithm than the problem's fastest
  long split = 0;     // by one that sums in several parts
};
/// Null on a real GPU.
__attribute__((weak)) const EmulatedLtCounts* zero_emulated_lt_counts();
/// True if a problem's fastest algorithm is refused for accumulating products. Off at first.
__attribute__((weak)) void zero_emulated_lt_refuse_fastest_sum(bool refuses);

}  // extern "C"
